"""One work on Structured Streaming with Spark's own Kafka connector, JSON in and out, at least once.

For its arguments see program.py. Settings: mode (batches or realtime), passes (how often all events are
processed into another topic before, so that Java has compiled what it will), source.* and sink.* for Kafka.
It looks every 10 ms how far it has come: in batches by Spark's own progress, which counts a batch when it is
committed; in Real-time Mode, where a batch takes seconds, by the rows that are in the output.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import pandas as pd
from kafka import TopicPartition
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.spark.jars import bare_local_fs_jar
from tests.benchmarks import plain
from tests.benchmarks.peers.jars import jars_of
from tests.benchmarks.peers.works import REPORT_EVERY

_SCHEMA = "sensor string, n long, value double, state string"
_JSON = {"ignoreNullFields": "false"}
_LOOK_S = 0.01
_REALTIME_BATCH = "5 seconds"  # the shortest that it takes


def session(directory: Path, threads: int, realtime: bool) -> SparkSession:
    state_store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        # In Real-time Mode all tasks of a query run at the same time: those that read, and those behind.
        "spark.master": f"local[{8 if realtime else 2}]",
        "spark.jars": ",".join(map(str, jars_of("spark"))),
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": str(bare_local_fs_jar()),
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.local.dir": str(directory / "scratch"),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(threads),
        "spark.sql.streaming.stateStore.providerClass": state_store,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.ui.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable  # what runs the Python of a query
    builder = SparkSession.builder.appName("peer")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


class _Difference(StatefulProcessor):
    """Each row of a sensor, with the difference to the one before. Rows come with the columns `names` and an
    offset, which have other names here."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._before = handle.getValueState("before", "value double")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        stored = self._before.get()
        given = pd.concat(list(rows))
        given.columns = [*self._names, "_offset"]
        given = given.sort_values("_offset", kind="stable")
        made = given["value"].diff()
        if stored is not None:
            made.iloc[0] = given["value"].iloc[0] - stored[0]
        self._before.update((float(given["value"].iloc[-1]),))
        yield given.drop(columns="_offset").assign(made=made)

    def close(self) -> None:
        """Nothing is held open."""


def _encoded(frame: DataFrame, *names: str) -> DataFrame:
    return frame.select(F.col("sensor").alias("key"), F.to_json(F.struct(*names), _JSON).alias("value"))


def _differed(frame: DataFrame, *more: str) -> DataFrame:
    names = ("sensor", "n", "value", "state", *more)
    rows = frame.select(*names, "_offset").groupBy("sensor")
    made = rows.transformWithStateInPandas(
        statefulProcessor=_Difference(names),
        outputStructType=", ".join([_SCHEMA, *(f"{name} double" for name in (*more, "made"))]),
        outputMode="Append",
        timeMode="None",
    )
    # pandas has no null among its numbers.
    return made.withColumn("made", F.when(F.isnan("made"), None).otherwise(F.col("made")))


def _chained(frame: DataFrame) -> DataFrame:
    rows = _differed(frame.withColumn("double", F.col("value") * 2), "double").filter("n % 10 = 0")
    return _encoded(rows, "sensor", "n", "value", "state", "double", "made")


def _counted(frame: DataFrame, every: int) -> DataFrame:
    """A row of the running statistics of a sensor at each `every`-th event: what Real-time Mode can do."""
    rows = frame.groupBy("sensor").agg(
        F.count("value").alias("count"),
        F.avg("value").alias("mean"),
        F.min("value").alias("minimum"),
        F.max("value").alias("maximum"),
    )
    return _encoded(rows.filter(f"count % {every} = 0"), "sensor", "count", "mean", "minimum", "maximum")


_BATCHES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter": plain.filtered,
    "map": plain.mapped,
    "windows": plain.windowed,
    "sliding": plain.slid,
    "keyed": plain.reported,
    "difference": lambda frame: _encoded(_differed(frame), "sensor", "n", "value", "state", "made"),
    "chain": _chained,
}
# By work: how it is done, and how many events make a row of its output.
_REALTIME: dict[str, tuple[Callable[[DataFrame], DataFrame], int]] = {
    "filter": (plain.filtered, 10),
    "map": (plain.mapped, 1),
    "keyed": (lambda frame: _counted(frame, REPORT_EVERY), REPORT_EVERY),
    "difference": (lambda frame: _counted(frame, 1), 1),
}


class Run:
    """One query over all events."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        work: str,
        topics: tuple[str, str],
        settings: dict[str, str],
    ) -> None:
        topic, self._output = topics
        self._realtime = settings["mode"] == "realtime"
        make, self._events_per_row = _REALTIME[work] if self._realtime else (_BATCHES[work], 1)
        source = {
            "kafka.bootstrap.servers": kafka.bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }
        rows = spark.readStream.format("kafka").options(**source, **_of(settings, "source.")).load()
        parsed = F.from_json(F.col("value").cast("string"), _SCHEMA)
        frame = rows.select(
            parsed.alias("data"), F.col("timestamp").alias("_time"), F.col("offset").alias("_offset")
        ).select("data.*", "_time", "_offset")
        writer = make(frame).select("key", "value").writeStream.format("kafka")
        writer = writer.options(**_of(settings, "sink."))
        writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap).option("topic", self._output)
        writer = writer.option("checkpointLocation", settings["checkpoints"] + "/" + self._output)
        writer = writer.outputMode("update" if self._realtime else "append")
        if self._realtime:
            writer = writer.trigger(realTime=_REALTIME_BATCH)
        self._kafka = kafka
        self._consumer = open_consumer(kafka)
        self.query: StreamingQuery = writer.start()

    def events(self) -> int:
        """How many events were processed."""
        failure = self.query.exception()
        if failure is not None:
            raise failure
        if self._realtime:
            return self._rows() * self._events_per_row
        progress = self.query.lastProgress
        if progress is None or not progress.sources or not progress.sources[0].endOffset:
            return 0
        ends = progress.sources[0].endOffset
        [partitions] = (json.loads(ends) if isinstance(ends, str) else ends).values()
        return sum(partitions.values())

    def _rows(self) -> int:
        numbers = self._consumer.partitions_for_topic(self._output) or ()
        ends = self._consumer.end_offsets([TopicPartition(self._output, number) for number in numbers])
        return sum(ends.values())

    def stop(self) -> None:
        self.query.stop()
        self._consumer.close()


def _of(settings: dict[str, str], client: str) -> dict[str, str]:
    return {name.removeprefix(client): value for name, value in settings.items() if name.startswith(client)}


def _wait(run: Run, count: int) -> int:
    while (seen := run.events()) < count:
        sleep(_LOOK_S)
    return seen


def main() -> None:
    bootstrap, _, directory, topic, output, work, count_text, warm, threads, *given = sys.argv[1:]
    settings = {"checkpoints": f"{directory}/checkpoints", **dict(each.split("=", 1) for each in given)}
    kafka, count = KafkaSettings(bootstrap), int(count_text)
    said = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Java prints is no word of this program
    spark = session(Path(directory), int(threads), settings["mode"] == "realtime")
    for number in range(int(settings["passes"])):
        before = f"{output}-before-{number}"
        ensure_topics(kafka, [Topic(before)])
        run = Run(spark, kafka, work, (topic, before), settings)
        _wait(run, count)
        run.stop()
    run = Run(spark, kafka, work, (topic, output), settings)
    warmed = _wait(run, int(warm))
    warm_at = perf_counter()
    said.write(f"WARM {warmed}\n")
    _wait(run, count)
    said.write(f"EVENTS_PER_S {(count - warmed) / (perf_counter() - warm_at)}\n")
    run.stop()
    spark.stop()


if __name__ == "__main__":
    main()
