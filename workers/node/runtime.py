"""The part of the engine that the agent uses.

`pipeline_runtime.replica` and `checkpoints.NodeCheckpoints` provide it. Tests of the agent use stand-ins,
because they do not need Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.model.desired import CheckpointSource, Directive, ReplicaStatus
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.looking import Looking
from workers.node.java_ends import JavaEnds


class RunningReplica(Protocol):
    """See pipeline_runtime.replica.replica.Replica.

    What it is told before `start` counts from its start on.
    """

    @property
    def growing(self) -> GrowingFiles:
        """The growing files of its run, or of its last run when it has ended."""
        ...

    @property
    def looking(self) -> Looking | None:
        """What lets others look at the state by key. It is None if there is none, or before it is open."""
        ...

    def start(self) -> None: ...
    def direct(self, directive: Directive) -> None: ...
    def stop(self, timeout_s: float) -> None: ...
    def kill(self) -> None: ...
    def status(self) -> ReplicaStatus: ...


@dataclass(frozen=True)
class Taken:
    """A checkpoint that this node holds."""

    seq: Seq
    epoch: Epoch
    at_ms: int
    bytes_total: int


class Checkpoints(Protocol):
    def take(
        self, spec: GroupSpec, epoch: Epoch, directory: Path, growing: GrowingFiles | None
    ) -> Taken | None:
        """Stores a snapshot of the newest committed batch in a replica's directory.

        Returns None if nothing was committed. `growing` has the growing files of the replica that runs there,
        or ran there last, and is None if they are not known.
        """
        ...

    def fetch(
        self, group: str, source: CheckpointSource, directory: Path, note: Callable[[str], None]
    ) -> int:
        """Puts a checkpoint into `directory`, which must not exist.

        Returns the bytes that were transferred.
        """
        ...

    def where(self, group: str, seq: Seq) -> tuple[str, ...]:
        """Returns the names of the places that have this checkpoint."""
        ...

    def forget(self, group: str) -> None:
        """Drops this node's own copies. The central ones stay."""
        ...


@dataclass(frozen=True)
class NodeRuntime:
    """Everything through which a slot acts."""

    directory: Path  # holds replicas/<group id>/g<generation>/
    open_replica: Callable[[GroupSpec, Path], RunningReplica]
    checkpoints: Checkpoints
    fetch_files: Callable[[GroupSpec], None]  # uploaded files that its sources read
    now_ms: Callable[[], int]
    changed: Callable[[], None]  # the node's report should be sent soon
    java_ends: JavaEnds


class LocalState:
    """A group's replica directories on this node. A directory `g<generation>` is whole or not there."""

    def __init__(self, node_directory: Path, group: str) -> None:
        self._directory = node_directory / "replicas" / group

    @property
    def root(self) -> Path:
        return self._directory

    def generation(self) -> int | None:
        """Returns the newest generation that is whole, or None."""
        found = [
            int(path.name[1:])
            for path in self._directory.glob("g*")
            if path.name[1:].isdecimal() and path.is_dir()
        ]
        return max(found, default=None)

    def at(self, generation: int) -> Path:
        return self._directory / f"g{generation}"

    def incoming(self, generation: int) -> Path:
        """Where a checkpoint is put together before it is renamed to `at(generation)`."""
        return self._directory / f".incoming-g{generation}"
