"""Plain Structured Streaming, without this project around it: what throughput is compared with.

The source reads with the same code (`PartitionReader`, `decode`), in batches of a fixed size; each
batch's rows go out by foreachBatch through a kafka-python producer. No gate, no journal, no seq, no
transaction, no dead letters: at least once.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from kafka import KafkaProducer, TopicPartition
from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from pipeline_runtime.batch.decode import TIMESTAMP, arrow_schema, decode
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.partition_reader import PartitionReader
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from tests.benchmarks.events import COLUMNS

FORMAT = "plain"
_SCHEMA = StreamSchema(fields=tuple(Field(name=c["name"], type=FieldType(c["type"])) for c in COLUMNS))
_META = [("_time", TIMESTAMP), ("_offset", pa.int64())]
_ARROW = pa.schema([*arrow_schema(_SCHEMA), *(pa.field(name, type_) for name, type_ in _META)])
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True)
class _Range(InputPartition):
    start: int
    end: int


class PlainReader(DataSourceStreamReader):
    def __init__(self, bootstrap: str, topic: str, rows_max: int) -> None:
        self._bootstrap, self._topic, self._rows_max = bootstrap, topic, rows_max

    def initialOffset(self) -> dict[str, Any]:
        return {"offset": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        tp = TopicPartition(self._topic, 0)
        if "ends" not in _open:
            _open["ends"] = open_consumer(KafkaSettings(self._bootstrap))
        end = _open["ends"].end_offsets([tp])[tp]
        return {"offset": min(end, start["offset"] + self._rows_max)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [_Range(start["offset"], end["offset"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        if self._topic not in _open:
            _open[self._topic] = PartitionReader(KafkaSettings(self._bootstrap), self._topic, 0)
            gc.collect()
            gc.freeze()
        for records in _open[self._topic].read(partition.start, partition.end):
            columns = decode(records.values, _SCHEMA).columns
            times = pa.array(records.timestamps_ms)
            columns = columns.append_column("_time", times.cast(pa.timestamp("ms", tz="UTC")).cast(TIMESTAMP))
            columns = columns.append_column("_offset", pa.array(records.offsets))
            yield from columns.cast(_ARROW).combine_chunks().to_batches()

    def commit(self, end: dict[str, Any]) -> None:
        """Spark's own checkpoint knows it."""


_open: dict[str, Any] = {}  # this process's consumers


class PlainSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(_ARROW, prefer_timestamp_ntz=False)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = self.options
        return PlainReader(options["bootstrap"], options["topic"], int(options["rows_max"]))


class PlainSink:
    """Sends a batch's rows and waits until they are acknowledged."""

    def __init__(self, producer: KafkaProducer, topic: str, done: Callable[[], None]) -> None:
        self._producer = producer
        self._topic = topic
        self._done = done

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.toArrow()
        keys = rows["key"].cast(pa.binary()).to_pylist()
        values = rows["value"].cast(pa.binary()).to_pylist()
        times = rows["time_ms"].to_pylist()
        for key, value, time_ms in zip(keys, values, times, strict=True):
            self._producer.send(self._topic, value, key, timestamp_ms=time_ms)
        self._producer.flush()
        self._done()


def filtered(frame: DataFrame) -> DataFrame:
    return _encoded(frame.filter("n % 10 = 0"), "sensor", "n", "value", "state")


def mapped(frame: DataFrame) -> DataFrame:
    doubled = frame.withColumn("double", F.col("value") * 2)
    return _encoded(doubled, "sensor", "n", "value", "state", "double")


def windowed(frame: DataFrame) -> DataFrame:
    return _windows(frame, F.window("_time", "1 second"))


def slid(frame: DataFrame) -> DataFrame:
    return _windows(frame, F.window("_time", "1 second", "250 milliseconds"))


def _windows(frame: DataFrame, window: Column) -> DataFrame:
    grouped = frame.withWatermark("_time", "0 seconds").groupBy(window.alias("window"), "sensor")
    windows = grouped.agg(
        F.avg("value").alias("average"), F.max("value").alias("highest"), F.count("value").alias("count")
    ).select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "sensor",
        "average",
        "highest",
        "count",
        F.col("window.end").alias("_time"),
    )
    return _encoded(windows, "window_start", "window_end", "sensor", "average", "highest", "count")


def reported(frame: DataFrame) -> DataFrame:
    rows = frame.select("sensor", "_offset", F.unix_millis("_time").alias("time_ms"), "value")
    reports = rows.groupBy("sensor").transformWithStateInPandas(
        statefulProcessor=_Statistics(),
        outputStructType=(
            "sensor string, count long, mean double, stddev double, minimum double, maximum double,"
            " time_ms long"
        ),
        outputMode="Append",
        timeMode="None",
    )
    data = F.to_json(F.struct("sensor", "count", "mean", "stddev", "minimum", "maximum"), _JSON)
    return reports.select(F.col("sensor").alias("key"), "time_ms", data.alias("value"))


class _Statistics(StatefulProcessor):
    """Running statistics as one writes them by hand for one purpose."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "text string")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        stored = self._state.get()
        count, mean, squares, low, high, due = (
            json.loads(stored[0]) if stored else (0, 0.0, 0.0, math.inf, -math.inf, None)
        )
        taken = [row for frame in rows for row in frame.itertuples(index=False, name=None)]
        taken.sort(key=lambda row: row[1])
        out = []
        for _, _, time_ms, value in taken:
            if due is not None and time_ms >= due:
                deviation = math.sqrt(squares / (count - 1)) if count > 1 else None
                out.append((key[0], count, mean, deviation, low, high, due))
                due = None
            count += 1
            delta = value - mean
            mean += delta / count
            squares += delta * (value - mean)
            low, high = min(low, value), max(high, value)
            if due is None:
                due = (time_ms // 1000 + 1) * 1000
        self._state.update((json.dumps((count, mean, squares, low, high, due)),))
        if out:
            yield pd.DataFrame(
                out, columns=["sensor", "count", "mean", "stddev", "minimum", "maximum", "time_ms"]
            )

    def close(self) -> None:
        """Nothing is held open."""


def _encoded(frame: DataFrame, *names: str) -> DataFrame:
    return frame.select(
        F.col("sensor").alias("key"),
        F.unix_millis("_time").alias("time_ms"),
        F.to_json(F.struct(*names), _JSON).alias("value"),
    )
