"""The node's engine: one Spark session, in which its replicas run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pipeline_runtime.formats.schema_registry import Registries
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import FileResolver
from pipeline_runtime.replica.host import ReplicaHost
from workers.node.identity import Identity
from workers.node.runtime import RunningReplica


class Engine(Protocol):
    def start(self) -> None:
        """Blocks until replicas can be opened."""
        ...

    def open_replica(self, spec: GroupSpec, directory: Path) -> RunningReplica: ...

    def close(self) -> None: ...


EngineFactory = Callable[[Identity, Callable[[], None], FileResolver, Registries], Engine]
"""Arguments: who the node is; called when a replica's status changes; finds the files that sources read; the
schema registries."""


class SparkEngine:
    def __init__(
        self,
        identity: Identity,
        changed: Callable[[], None],
        resolve_file: FileResolver,
        registries: Registries,
    ) -> None:
        self._host = ReplicaHost(
            identity.name,
            identity.directory,
            identity.kafka,
            changed,
            resolve_file,
            batch_s=identity.batch_s,
            registries=registries,
        )

    def start(self) -> None:
        self._host.start()

    def open_replica(self, spec: GroupSpec, directory: Path) -> RunningReplica:
        # Late, because it loads Spark's code for a second, and the enrolment need not wait for that.
        from pipeline_runtime.replica.replica import Replica

        return Replica(spec, directory, self._host)

    def close(self) -> None:
        self._host.close()
