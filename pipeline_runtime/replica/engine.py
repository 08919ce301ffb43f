"""The interface of the engine that runs a group's query: all calls of a replica and its node to Spark.

A node uses `pipeline_runtime.spark.engine`. The tests of handovers use an engine without Spark, because what
they break lies on this side of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.output import BatchOutput


class BatchRows(Protocol):
    """A batch, as the engine runs it."""

    def toArrow(self) -> pa.Table:
        """Compute the rows, and the state that goes with them. Called once."""
        ...

    def output(self, rows: pa.Table, batch_time_ms: int) -> BatchOutput:
        """What the batch has made: of the rows that `toArrow` gave. Not asked of a group whose tasks stay."""
        ...


OnBatch = Callable[[BatchRows, int], None]
"""Called with a batch's rows and the engine's number of the batch. The batch counts when the call returns."""


class Query(Protocol):
    """Runs a group's batches, one after the other, until it is stopped or one of them fails."""

    @property
    def isActive(self) -> bool: ...

    def exception(self) -> BaseException | None:
        """What has ended the query, if anything has."""
        ...

    def stop(self) -> None:
        """Begin no further batch. Returns when the one that is running is over."""
        ...


class Engine(Protocol):
    """One per node process."""

    def start(self, sockets: Path) -> None:
        """`sockets`: a directory with a short path that no other user can enter, for the engine's sockets."""
        ...

    def start_query(
        self, group: GroupFacts, name: str, gate_address: str, directory: Path, on_batch: OnBatch
    ) -> Query:
        """Go on from what `directory` holds (replica.local_state says its layout), as the gate grants it."""
        ...

    def close(self) -> None:
        """Queries must have been stopped before."""
        ...
