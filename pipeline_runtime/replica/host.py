"""Holds what all replicas of a node process share: the engine, the gate, the broker's address."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.formats.schema_registry import Registries, no_registry
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.operators.sdk import FileResolver
from pipeline_runtime.replica.broker_watch import BrokerWatch
from pipeline_runtime.replica.engine import Engine
from pipeline_runtime.replica.pacing import CpuLoad
from pipeline_runtime.replica.starts import StartTurns
from pipeline_runtime.spark.engine import SparkEngine

# How often a change is told that is only another batch: to look at a status costs more than a small batch.
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
        batch_s: float = 600.0,
        engine: Engine | None = None,
        registries: Registries = no_registry,
    ) -> None:
        """`engine` runs the queries. Without one that is Spark, with so many `cores` and so much memory.
        `batch_s` is the longest that a batch may take. `registries` may be asked by any thread."""
        self.node = node
        self.directory = directory
        self.kafka = kafka
        self.changed = changed
        self.resolve_file = resolve_file
        self.cpu = CpuLoad()
        self.starts = StartTurns(cores)
        self.batch_s = batch_s
        self.broker = BrokerWatch(kafka, changed)
        self._progress_told_s = 0.0
        self.registries = registries
        self.engine = engine or SparkEngine(f"fogline {node}", directory / "scratch", cores, memory_mib)
        self._gate: GateServer | None = None

    def start(self) -> None:
        """Opens the gate and starts the engine. Spark's session takes 5 to 12 s."""
        self._gate = GateServer()
        self.broker.start()
        self.engine.start(self._gate.directory)

    def progressed(self, at_once: bool) -> None:
        """Says that a batch of some replica is done. `at_once`: somebody waits to hear of it."""
        if at_once or monotonic() - self._progress_told_s >= PROGRESS_EVERY_S:
            self._progress_told_s = monotonic()
            self.changed()

    @property
    def gate(self) -> GateServer:
        if self._gate is None:
            raise RuntimeError(f"node {self.node}: the gate is not open yet")
        return self._gate

    def close(self) -> None:
        """Stops the engine. The caller has stopped or killed all replicas before."""
        self.broker.close()
        self.engine.close()
        if self._gate is not None:
            self._gate.close()
            self._gate = None
