"""Runs groups' queries in the node's one Spark session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.spark.freed_memory import keep_freed_memory
from pipeline_runtime.spark.planned import PlannedGroup
from pipeline_runtime.spark.schema import spark_schema
from pipeline_runtime.spark.session import open_session, use_worker_python
from pipeline_runtime.spark.source import FORMAT
from pipeline_runtime.spark.tagged import TAGGED, output_of
from pipeline_runtime.spark.zygote import ENVIRONMENT, Zygote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkEngine:
    """Implements replica.engine.Engine. `scratch`: a directory for Spark's own temporary files."""

    def __init__(self, name: str, scratch: Path, cores: int, memory_mib: int) -> None:
        self._name = name
        self._scratch = scratch
        self._cores = cores
        self._memory_mib = memory_mib
        self._session: SparkSession | None = None
        self._zygote: Zygote | None = None

    def start(self, sockets: Path) -> None:
        """Open the session, which takes 5 to 12 s."""
        keep_freed_memory()  # this process writes what the tasks make
        # A Java process that was killed may have left copies of states there.
        shutil.rmtree(self._scratch, ignore_errors=True)
        use_worker_python()  # the path that the zygote imports from
        self._zygote = Zygote(sockets)
        os.environ[ENVIRONMENT] = str(self._zygote.path)  # for what Java starts
        self._session = open_session(self._name, self._scratch, sockets, self._cores, self._memory_mib)

    @property
    def session(self) -> SparkSession:
        if self._session is None:
            raise RuntimeError(f"{self._name}: the Spark session is not up yet")
        return self._session

    def start_query(
        self,
        group: GroupFacts,
        name: str,
        gate_address: str,
        directory: Path,
        on_batch: Callable[[SparkRows, int], None],
    ) -> StreamingQuery:
        planned = PlannedGroup(group) if group.is_planned else None
        # A task that stays gives Spark no rows: the gate gets them.
        schema = TAGGED if planned is None else planned.schema
        gated = self.session.readStream.format(FORMAT).option("gate", gate_address)
        frame = gated.schema(spark_schema(schema)).load()
        if planned is not None:
            frame = planned.frame(frame, gate_address)
        return (
            frame.writeStream.outputMode("append" if planned is None else planned.output_mode)
            .queryName(name)
            .option("checkpointLocation", str(directory))
            .foreachBatch(lambda rows, batch: on_batch(SparkRows(rows, planned), batch))
            .start()
        )

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


class SparkRows:
    """Implements replica.engine.BatchRows."""

    def __init__(self, rows: DataFrame, planned: PlannedGroup | None) -> None:
        self._rows = rows
        self._planned = planned

    def toArrow(self) -> pa.Table:
        return self._rows.toArrow()

    def output(self, rows: pa.Table, batch_time_ms: int) -> BatchOutput:
        assert self._planned is not None, "tasks that stay hand over what they make"
        completed = self._planned.completed(self._rows.sparkSession, rows, batch_time_ms)
        return output_of(completed, self._planned.spec)
