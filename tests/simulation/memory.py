"""The memory of a simulated replica: its orders, its reports and its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipeline_runtime.handover.protocol import Following, State
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.journal.trailing import TrailingView
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.core import Granted
from tests.simulation.broker import Handle


@dataclass(frozen=True, slots=True)
class Desired:
    """What control wants of a replica, as it is stored on the node's disk."""

    revision: int = 0
    order: ClaimOrder | None = None  # to own
    succeed: str | None = None
    release: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A replica's report."""

    at: int
    owner: bool
    epoch: Epoch
    seq: Seq
    order: str | None
    refused: bool
    lost: bool
    armed: str | None
    released: str | None


def fold(state: int, boundary: Boundary) -> int:
    return (state * 31 + boundary.ends["in"] * 7 + boundary.seq) % 1_000_003


@dataclass(slots=True)
class Memory:
    """What a crash takes from a replica."""

    state: State = Following()
    view: JournalView = field(default_factory=JournalView)
    position: int = 0
    trailing: TrailingView | None = None  # what its mark is made of; None for an actor that notes none
    handle: Handle | None = None
    asked: int = 0  # the number of the open question; 0 when there is none
    asked_at: int = 0
    mail: list[tuple[int, Any]] = field(default_factory=list)
    unsent: Callable[[], Any] | None = None  # what it is about to ask; it may be paused before that
    then: Callable[[Any], None] | None = None
    read_to: int | None = None  # the offset that the journal has to be read to
    permit: Epoch | None = None
    order_done: str | None = None
    refused: bool = False
    released: str | None = None
    warmed_at: int = 0
    running: Granted | None = None  # the running batch
    worked: int | None = None  # the state that it leaves, if it has begun while the one before was committed
    committing: bool = False  # it is being committed, and the next one may begin
    tentative: tuple[Granted, int] | None = None  # the next one, and the state that it leaves
    releases: bool = False  # with the running batch
    announced: int = 0  # batches announced in the present release
