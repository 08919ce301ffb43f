"""Runs groups' queries in the node's one Spark session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.streaming.query import StreamingQuery

from pipeline_runtime.spark.session import open_session, use_worker_python
from pipeline_runtime.spark.zygote import ENVIRONMENT, Zygote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline_runtime.spark.frame import GroupFrame


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
        """Open the session: 5 to 12 s."""
        # A Java process that was killed has left its copies of states there.
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
        frame: GroupFrame,
        name: str,
        gate_address: str,
        directory: Path,
        on_batch: Callable[[DataFrame, int], None],
    ) -> StreamingQuery:
        return (
            frame.query_frame(self.session, gate_address)
            .writeStream.outputMode(frame.output_mode)
            .queryName(name)
            .option("checkpointLocation", str(directory))
            .foreachBatch(on_batch)
            .start()
        )

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
