"""Responses about handovers, and about orders that drop or replay dead letters."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from webapp.json_types import Number

StrategyName = Literal["standby", "stop-and-copy", "hot-standby", "checkpoint", "rewind"]
Start = Literal["follows", "warm", "cold"]
"""follows: the target has a copy that follows. warm: the target runs another element. cold: it runs
nothing."""
Basis = Literal["group", "node", "pipeline", "typical"]


class PhaseEntry(TypedDict):
    phase: str
    start_ms: int
    end_ms: int | None
    bytes: int
    note: str
    behind: NotRequired[int | None]
    """in the phase WARM: the number of committed batches that the target has not followed yet"""


class HandoverPause(TypedDict):
    """How long the element paused, and the times from which Fogline computed this pause."""

    ms: int
    """how much longer rows waited because of the move"""
    at_most: bool
    """whether the pause may be shorter, because `waited_ms` or `usual_ms` is not known"""
    gap_ms: int
    """from the old owner's last commit to the new owner's first"""
    waited_ms: int | None
    """how long rows waited in the gap; null if it is not known when they came"""
    usual_ms: int | None
    """how long rows usually wait; null if there were too few rows before the move"""


class Measured(TypedDict, total=False):
    """Times by the broker's clock, in ms since 1970. Waits in ms."""

    at_ms: int | None
    """the time of the CLAIM or the RELEASE"""
    last_commit_at_ms: int | None
    first_commit_at_ms: int | None
    stopped_at_ms: int
    """when control told the old owner to stop, in a stop-and-copy, by control's clock"""
    first_wait_ms: int | None
    usual_wait_ms: int | None


class Batch(TypedDict):
    """A batch that was committed around a change of owner."""

    at_ms: int
    """when the broker took the batch's commit"""
    node: str
    rows: int
    wait_ms: int | None
    """how long the batch's oldest row had waited by then; null if it is not known when that row came"""


class Mark(TypedDict):
    what: Literal["armed", "announced", "released", "claimed"]
    at_ms: int
    """when the broker took the record"""


class Written(TypedDict):
    """The records that both owners wrote to the journal around a change of owner, in their order."""

    marks: list[Mark]
    batches: list[Batch]


class MoveSpread(TypedDict):
    """The spread of the figures of several moves, by nearest rank."""

    n: int
    least: int
    p50: int
    p95: int
    most: int


class FormerMove(TypedDict):
    id: str
    ended_at: str
    origin: str
    target: str
    pause_ms: int | None
    """null if the pause was not measured, or may have been shorter"""
    ready_ms: int | None
    """the time from the order until the new owner owned"""
    bytes: int


class Former(TypedDict):
    """Earlier moves of the same group by the same strategy that succeeded, newest first."""

    moves: list[FormerMove]
    pause_ms: MoveSpread | None
    ready_ms: MoveSpread | None
    bytes: MoveSpread | None


class HandoverDetails(TypedDict):
    written: Written | None
    """null if Fogline has not read the journal yet or cannot read it, or if the owner did not change"""
    ready_ms: int | None
    """the time from the order until the new owner owned"""
    former: Former


class Begun(TypedDict):
    start: Start
    bytes: int | None
    """the size of the newest checkpoint; null if there was none"""
    had: bool
    """whether the target had a copy of that checkpoint"""


class Handover(TypedDict):
    id: str
    pipeline: str
    deployment: str
    element: str
    group: str
    kind: Literal["migration", "restoration"]
    strategy: StrategyName
    origin: str
    target: str
    checkpoint_seq: int | None
    phase: str
    outcome: Literal["done", "failed", "cancelled"] | None
    message: str
    code: str
    """the error code of a failed handover, which has a page in docs/errors; empty if there is none"""
    timeline: list[PhaseEntry]
    gap_ms: int | None
    """from the old owner's last commit to the new owner's first"""
    measured: Measured
    round_trips: int | None
    """the number of requests to the broker, from the commit of the RELEASE to the commit of the first
    output"""
    reason: str
    """why Fogline ordered the handover by itself"""
    bytes_copied: int
    cancel_requested: bool
    """whether somebody asked to cancel the handover; it is cancelled unless it has already passed the cut"""
    pause: HandoverPause | None
    """null if the pause was not measured, or if no rows were processed"""
    begun: Begun
    """the state of the target when the handover was ordered"""
    created_at: str
    created_by: str | None
    """the user who ordered the handover; null if control ordered it"""
    ended_at: str | None
    cancellable: bool


class Ordered(TypedDict):
    handover: Handover


QueuedState = Literal["waits", "moving", "done", "failed", "cancelled", "left-out"]
"""left-out: the move was not ordered, because a move before it failed or was cancelled"""


class QueuedMove(TypedDict):
    """A move in the queue of its pipeline. Control orders the move when the one before it is done."""

    id: int
    pipeline: str
    element: str
    """the element that the user chose; all elements of its group move with it"""
    target: str
    state: QueuedState
    place: int
    """the place in the queue, from 1"""
    of: int
    """the number of moves of the queue, including those that have ended"""
    waits_for: str | None
    """the element before this one in the queue that has not moved yet; null unless this move waits"""
    handover: str | None
    """the id of the handover; null until the move is ordered"""
    message: str
    """why the move still waits, or was not ordered; empty if there is no reason to show"""
    created_at: str
    created_by: str | None
    ended_at: str | None


class NotBroughtBack(TypedDict):
    element: str
    home: str
    reason: str
    """the reason as a sentence"""


class BroughtBack(TypedDict):
    handovers: list[Handover]
    elements: list[str]
    """all elements that move by these handovers"""
    refused: list[NotBroughtBack]


class Expected(TypedDict):
    """An expected time: the median of earlier moves, or a typical value."""

    ms: int
    least_ms: int
    """the shortest and the longest time of the earlier moves; for a typical value both are that value"""
    most_ms: int
    basis: Basis
    n: int
    """the number of earlier moves"""


class Way(TypedDict):
    ready: Expected | None
    """the time before the pause; null if the move prepares nothing, so that all of its time is the pause"""
    pause: Expected


Restorations = TypedDict(
    "Restorations",
    {"hot-standby": Expected | None, "checkpoint": Expected | None, "rewind": Expected | None},
)
"""The expected time from the order until the group runs on the other node, by strategy. It is null for a
strategy that is not possible."""


class BeforeAfter(TypedDict):
    """A figure before and after the move. It is null if it is not known."""

    before: Number | None
    after: Number | None


class MoveCost(TypedDict):
    """The time and the traffic that a move to a node costs, and the load and the latencies after it."""

    bytes: int | None
    """the bytes that the node has to fetch from the present node; 0 if it has the newest checkpoint or a
    standby; null if there is no checkpoint yet"""
    bytes_per_s: Number | None
    """the rate of the line between the two sites; null if it is not measured, or if both nodes stand at one
    site"""
    latency_ms: Number | None
    """the latency (one way) of that line; null if it is not known, or if both nodes stand at one site"""
    copy_s: Number | None
    """the time that the copy takes at that rate; null if it is not known"""
    same_site: bool
    cpu: BeforeAfter
    """the CPU load of the node, 0..1, at the present rate of rows"""
    origin_cpu: BeforeAfter
    """the CPU load of the present node, 0..1"""
    upstream_ms: BeforeAfter | None
    """the latency (one way) from the farthest node that writes the element's inputs; null if it has no
    inputs"""
    downstream_ms: BeforeAfter | None
    """the latency (one way) to the farthest node that reads the element's outputs; null if no node reads
    them"""


class OtherNode(TypedDict):
    """A node on which the element does not run."""

    node: str
    refusal: str | None
    """why the node cannot take the element now; null if it can"""
    cores: int
    """the number of cores; 0 if it is not known"""
    cores_free: Number | None
    """the number of free cores; null if it is not known"""
    upstream_ms: Number | None
    """the latency (one way) from the farthest node that writes the element's inputs; null if it is not known,
    or if there is no such node"""
    downstream_ms: Number | None
    """the latency (one way) to the farthest node that reads the element's outputs"""
    state: Literal["standby", "backup", "none"]
    """what the node has of the element's state: a standby, the newest checkpoint, or nothing"""
    warnings: list[str]
    """reasons against moving the element to this node; a person may do it all the same"""


NodeForecast = TypedDict(
    "NodeForecast",
    {
        "start": Start,
        "bytes": int | None,
        "had": bool,
        "standby": Way,
        "stop-and-copy": Way,
        "restore": Restorations,
        "cost": MoveCost | None,
        "warnings": list[str],
    },
)
"""The expected time of a move of the element to each node."""


class Forecast(TypedDict):
    nodes: dict[str, NodeForecast]


class GroupAfter(TypedDict):
    """The expected fate of a group if its node died now."""

    pipeline: str
    element: str
    """the id of one element of the group"""
    titles: list[str]
    """the titles of all elements of the group"""
    target: str | None
    """the node on which control would restore the group; null if there is none, see `reason`"""
    way: Literal["hot-standby", "checkpoint"] | None
    expected: Expected | None
    """the time from the order until the group runs there"""
    bytes: int | None
    """the bytes that the node has to fetch; 0 if it has the checkpoint; null if it has a standby, or if no
    checkpoint is known yet"""
    by_itself: bool
    reason: str | None
    """why control does not restore the group, or waits for a person"""


class NodeFailure(TypedDict):
    silence_s: Number
    """the node counts as silent after this time"""
    groups: list[GroupAfter]
    backups: list[str]
    """the groups that run on other nodes and whose checkpoint has a copy on this node"""


DidToLetters = Literal["drop", "put-back", "replay"]


class StayedLetter(TypedDict):
    offset: int
    why: str
    """why the row of the letter did not come back, as a sentence"""


class LettersCounted(TypedDict):
    """The letters that an order about a reason would concern: the open ones from one offset to before
    another."""

    letters: int
    first: int
    until: int
    """letters that come later have this offset or a higher one"""
    more: bool
    """whether there are older letters that were not counted"""


class LetterOrder(TypedDict):
    """An order of a user about dead letters."""

    id: str
    did: DidToLetters
    reason: str
    """the name of the group of letters that the user chose; empty if the user chose no group"""
    text: str
    """the order concerns only letters with this text in their reason; empty if it concerns all"""
    letters: int
    """the number of letters that were open when the order was given"""
    mended: bool
    """whether the user changed values of the rows before they came back"""
    status: Literal["pending", "done", "failed", "cancelled"]
    cancel_requested: bool
    """whether somebody asked to cancel the order; it ends before its next 1,000 offsets"""
    message: str
    """why the order failed"""
    taken: int
    """the number of letters for which the order is done so far"""
    before: int
    """the number of letters that another order had already settled, or that the topic no longer had"""
    stayed: list[StayedLetter]
    """the first rows that did not come back; `stayed_count` is the number of all"""
    stayed_count: int
    may_be_put_back: bool
    at: str
    by: str | None
