"""What runs a group's query: all that a replica and its node ask of Spark.

The node's is `pipeline_runtime.spark.engine`. The tests of the handover have one without Spark, since
what they break lies on this side.
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
        """Computed by this call, with the state that goes with them; called once."""
        ...

    def output(self, rows: pa.Table, batch_time_ms: int) -> BatchOutput:
        """What the batch has made: of the rows that `toArrow` gave. Not asked of a group whose tasks stay."""
        ...


OnBatch = Callable[[BatchRows, int], None]
"""Called with a batch's rows and the engine's number of it; the batch counts when it returns."""


class Query(Protocol):
    """A group's batches, one after the other, until it is stopped or one fails."""

    @property
    def isActive(self) -> bool: ...

    def exception(self) -> BaseException | None:
        """What has ended it, if anything did."""
        ...

    def stop(self) -> None:
        """No new batch; returns when the one that is running is over."""
        ...


class Engine(Protocol):
    """One per node process."""

    def start(self, sockets: Path) -> None:
        """`sockets`: a directory with a short path that no other user can enter, for sockets of its own."""
        ...

    def start_query(
        self, group: GroupFacts, name: str, gate_address: str, directory: Path, on_batch: OnBatch
    ) -> Query:
        """Go on from what `directory` holds (its layout: replica.local_state), as the gate grants it."""
        ...

    def close(self) -> None:
        """Queries must have been stopped before."""
        ...
