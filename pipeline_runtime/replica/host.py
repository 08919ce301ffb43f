"""What all replicas of a node process share: the Spark session, the gate, the broker's address."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.operators.sdk import FileResolver
from pipeline_runtime.replica.gate import GateServer
from pipeline_runtime.replica.pacing import CpuLoad
from pipeline_runtime.replica.starts import StartTurns
from pipeline_runtime.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How often batches alone are told of: what looks then costs more than a small batch.
PROGRESS_EVERY_S = 1.0


class ReplicaHost:
    """One per node process. `changed` is called, from any thread, when a replica's status changes."""

    def __init__(
        self,
        node: str,
        directory: Path,
        kafka: KafkaSettings,
        changed: Callable[[], None],
        resolve_file: FileResolver,
        *,
        cores: int = 2,
        memory_mib: int = 1024,
    ) -> None:
        self.node = node
        self.directory = directory
        self.kafka = kafka
        self.changed = changed
        self.resolve_file = resolve_file
        self.cpu = CpuLoad()
        self.starts = StartTurns(cores)
        self._progress_told_s = 0.0
        self._cores = cores
        self._memory_mib = memory_mib
        self._session: SparkSession | None = None
        self._gate: GateServer | None = None

    def start(self) -> None:
        """Open the Spark session: 5 to 12 s."""
        self._gate = GateServer()
        scratch = self.directory / "scratch"
        # A Java process that was killed has left its copies of states there.
        shutil.rmtree(scratch, ignore_errors=True)
        self._session = open_session(
            f"fogline {self.node}", scratch, self._gate.directory, self._cores, self._memory_mib
        )

    def progressed(self, at_once: bool) -> None:
        """A batch of some replica is done. `at_once`: somebody waits to hear of it."""
        if at_once or monotonic() - self._progress_told_s >= PROGRESS_EVERY_S:
            self._progress_told_s = monotonic()
            self.changed()

    @property
    def session(self) -> SparkSession:
        if self._session is None:
            raise RuntimeError(f"node {self.node}: the Spark session is not up yet")
        return self._session

    @property
    def gate(self) -> GateServer:
        if self._gate is None:
            raise RuntimeError(f"node {self.node}: the gate is not open yet")
        return self._gate

    def close(self) -> None:
        """Stop Spark. Replicas must have been stopped or killed before."""
        if self._session is not None:
            self._session.stop()
            self._session = None
        if self._gate is not None:
            self._gate.close()
            self._gate = None
