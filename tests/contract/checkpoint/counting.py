"""A program for test_spark_files.py: snapshots of a real query while it runs, and a run from the last one.

Prints one JSON line per event. Arguments: `first|again`, directory of the replicas (one for each kind
of state), work directory, directory for the materialized snapshots.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.local_state import KeptBySpark, relocate
from pipeline_runtime.spark.session import open_session

ROWS_PER_BATCH = 20
KEYS = 5
KINDS = ("aggregate", "keyed")
_PATIENCE_S = 300  # for the first batch of a Java that starts cold


@cache
def freeze() -> None:
    """Once in each of Spark's Python processes: else they look through all that they have imported after each
    batch."""
    gc.collect()
    gc.freeze()


class Range(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        super().__init__(None)
        self.start = start
        self.end = end


class NumbersReader(DataSourceStreamReader):
    """The numbers 0, 1, 2, …; offsets as the gated source's: `{"seq", "ends", "batch_time"}`."""

    def initialOffset(self) -> dict[str, Any]:
        return {"seq": 0, "ends": {"in-0": 0}, "batch_time": 0}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        freeze()
        seq = start["seq"] + 1
        return {"seq": seq, "ends": {"in-0": seq * ROWS_PER_BATCH}, "batch_time": seq}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Range]:
        return [Range(start["ends"]["in-0"], end["ends"]["in-0"])]

    def commit(self, end: dict[str, Any]) -> None:
        return None

    def read(self, partition: Any) -> Iterator[tuple[int, str]]:
        freeze()
        for number in range(partition.start, partition.end):
            yield number, f"k{number % KEYS}"


class Numbers(DataSource):
    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "number long, key string"

    def streamReader(self, schema: Any) -> NumbersReader:
        return NumbersReader()


class Count(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        freeze()
        self._count = handle.getValueState("count", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:
        count = self._count.get()[0] if self._count.exists() else 0
        count += sum(len(frame) for frame in rows)
        self._count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self) -> None:
        return None


def counts(session: SparkSession, kind: str) -> DataFrame:
    numbers = session.readStream.format("numbers").load()
    if kind == "aggregate":
        return numbers.groupBy("key").count()
    return numbers.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Count(),
        outputStructType="key string, count long",
        outputMode="Update",
        timeMode="None",
    )


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def main(phase: str, replicas: Path, work: Path, targets: Path) -> None:
    with TemporaryDirectory() as sockets:
        session = open_session("counting", work / "scratch", Path(sockets))
        session.dataSource.register(Numbers)
        session.conf.set("spark.sql.streaming.stateStore.minDeltasForSnapshot", "3")
        session.conf.set("spark.sql.streaming.stateStore.maintenanceInterval", "500ms")
        for kind in KINDS:
            run(session, phase, kind, replicas / kind, work / kind, targets / kind)
        session.stop()


def run(session: SparkSession, phase: str, kind: str, replica: Path, work: Path, target: Path) -> None:
    if phase == "again":
        relocate(replica)
    batches = threading.Condition()
    seen: list[int] = []
    kept = KeptBySpark(replica)

    def sink(frame: DataFrame, batch: int) -> None:
        rows = {row["key"]: row["count"] for row in frame.select("key", F.col("count")).collect()}
        say(event="batch", kind=kind, batch=batch, counts=rows)
        seq = batch + 1
        kept.commit(batch, Boundary(Seq(seq), {"in-0": seq * ROWS_PER_BATCH}, seq))
        with batches:
            seen.append(batch)
            batches.notify_all()

    query = (
        counts(session, kind)
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(replica / "spark"))
        .trigger(processingTime="50 milliseconds")
        .foreachBatch(sink)
        .start()
    )

    def wait_for(number: int) -> None:
        with batches:
            assert batches.wait_for(lambda: len(seen) >= number, _PATIENCE_S), query.exception()

    if phase == "first":
        with StateDatabase(work / "state") as database:
            for round_ in range(8):
                wait_for(4 * (round_ + 1))
                with take_snapshot(replica, work) as taken:
                    stored = store(
                        taken, database, group="g", epoch=Epoch(1), version="1", node="n", now_ms=0
                    )
                say(event="snapshot", kind=kind, batch=taken.batch, seq=taken.seq, ends=taken.ends,
                    files=[file.path for file in taken.files])  # fmt: skip
            wait_for(36)
            materialize(stored, lambda sha: database.get_chunk("g", sha), target)
    else:
        wait_for(6)
    query.stop()


if __name__ == "__main__":
    # The source must be importable by Spark's workers under its module's name, not as __main__.
    from tests.contract.checkpoint import counting

    counting.main(sys.argv[1], *map(Path, sys.argv[2:5]))
