"""Responses about handovers, and about orders that concern dead letters."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from webapp.json_types import Number

StrategyName = Literal["standby", "stop-and-copy", "hot-standby", "checkpoint", "rewind"]
Start = Literal["follows", "warm", "cold"]
"""What the target has: its copy follows; it runs something; it runs nothing."""
Basis = Literal["group", "node", "pipeline", "typical"]


class PhaseEntry(TypedDict):
    phase: str
    start_ms: int
    end_ms: int | None
    bytes: int
    note: str
    behind: NotRequired[int | None]
    """WARM: committed batches that the target has not followed yet"""


class HandoverPause(TypedDict):
    """How long the element paused, and what that was computed from."""

    ms: int
    """how much longer rows waited because of the move"""
    at_most: bool
    """the pause may be shorter, because `waited_ms` or `usual_ms` is not known"""
    gap_ms: int
    """from the old owner's last commit to the new owner's first"""
    waited_ms: int | None
    """how long rows waited in that time; null if it is not known when they came"""
    usual_ms: int | None
    """how long rows usually wait; null if there were too few before"""


class Measured(TypedDict, total=False):
    """Times by the broker's clock, in ms since the epoch; waits in ms."""

    at_ms: int | None
    """the time of the claim or the release"""
    last_commit_at_ms: int | None
    first_commit_at_ms: int | None
    stopped_at_ms: int
    """when a stop-and-copy told the old owner to stop, by control's clock"""
    first_wait_ms: int | None
    usual_wait_ms: int | None


class Batch(TypedDict):
    """A batch that was committed around a change of owner."""

    at_ms: int
    """when the broker took its commit"""
    node: str
    rows: int
    wait_ms: int | None
    """how long its oldest row had waited by then; null if it is not known when that row came"""


class Mark(TypedDict):
    what: Literal["armed", "announced", "released", "claimed"]
    at_ms: int
    """when the broker took it"""


class Written(TypedDict):
    """What both owners wrote to the journal around a change of owner, in its order."""

    marks: list[Mark]
    batches: list[Batch]


class MoveSpread(TypedDict):
    """By nearest rank."""

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
    """null if it was not measured, or may have been shorter"""
    ready_ms: int | None
    """from the order until ownership passed"""
    bytes: int


class Former(TypedDict):
    """Moves of the same group by the same strategy that were done before, newest first."""

    moves: list[FormerMove]
    pause_ms: MoveSpread | None
    ready_ms: MoveSpread | None
    bytes: MoveSpread | None


class HandoverDetails(TypedDict):
    written: Written | None
    """null until it was read, if there was no change of owner, or if the journal could not be read"""
    ready_ms: int | None
    """from the order until ownership passed"""
    former: Former


class Begun(TypedDict):
    start: Start
    bytes: int | None
    """of the newest checkpoint; null if there was none"""
    had: bool
    """whether it had a copy of that checkpoint"""


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
    """of a failure: it has a page; empty if there is none"""
    timeline: list[PhaseEntry]
    gap_ms: int | None
    """from the old owner's last commit to the new owner's first"""
    measured: Measured
    round_trips: int | None
    """to the broker, from the RELEASE's commit to the first output's"""
    reason: str
    """why it was ordered automatically"""
    bytes_copied: int
    cancel_requested: bool
    """somebody asked for its end; it ends unless it has passed the cut by then"""
    pause: HandoverPause | None
    """null if it was not measured, or nothing was processed"""
    begun: Begun
    """what the target had when it was ordered"""
    created_at: str
    created_by: str | None
    """null if control ordered it automatically"""
    ended_at: str | None
    cancellable: bool


class Ordered(TypedDict):
    handover: Handover


QueuedState = Literal["waits", "moving", "done", "failed", "cancelled", "left-out"]
"""left-out: it was not ordered, since one before it was not done."""


class QueuedMove(TypedDict):
    """A move in the queue of its pipeline. Control orders it when the one before it is done."""

    id: int
    pipeline: str
    element: str
    """the one that was chosen; all that run as one with it move"""
    target: str
    state: QueuedState
    place: int
    """in the queue, from 1"""
    of: int
    """how many moves the queue has, with those that have ended"""
    waits_for: str | None
    """the element before it in the queue that has not moved yet; null unless it waits"""
    handover: str | None
    """null until it was ordered"""
    message: str
    """why it still waits, or was not ordered; empty if there is nothing to say"""
    created_at: str
    created_by: str | None
    ended_at: str | None


class NotBroughtBack(TypedDict):
    element: str
    home: str
    reason: str
    """as a sentence"""


class BroughtBack(TypedDict):
    handovers: list[Handover]
    elements: list[str]
    """all that move with these handovers"""
    refused: list[NotBroughtBack]


class Expected(TypedDict):
    """A median of what was measured, or a typical value."""

    ms: int
    least_ms: int
    """the shortest and the longest of them; a typical value is its own range"""
    most_ms: int
    basis: Basis
    n: int
    """the number of moves"""


class Way(TypedDict):
    ready: Expected | None
    """null if nothing is prepared and all of it is the pause"""
    pause: Expected


Restorations = TypedDict(
    "Restorations",
    {"hot-standby": Expected | None, "checkpoint": Expected | None, "rewind": Expected | None},
)
"""From the order until it runs there. null if this way does not exist."""


class BeforeAfter(TypedDict):
    """null when it is not known"""

    before: Number | None
    after: Number | None


class MoveCost(TypedDict):
    """What a move to a node takes and changes."""

    bytes: int | None
    """to be fetched from its present node; 0 if the newest checkpoint lies there or a standby follows; null
    if there is no checkpoint yet"""
    bytes_per_s: Number | None
    """of the line between the two sites; null if it is not measured, or the site is the same"""
    copy_s: Number | None
    """at that rate; null if it is not known"""
    same_site: bool
    cpu: BeforeAfter
    """of the node, 0..1, by the rows that pass"""
    origin_cpu: BeforeAfter
    """of the node that it leaves"""
    upstream_ms: BeforeAfter | None
    """from the farthest node of what it reads, one way; null if it reads none"""
    downstream_ms: BeforeAfter | None
    """to the farthest node of what reads from it, one way; null if nothing does"""


class OtherNode(TypedDict):
    """A node that an element does not run on."""

    node: str
    refusal: str | None
    """why it cannot take the element now; null if it can"""
    cores: int
    """0 if it is not known"""
    cores_free: Number | None
    """null if it is not known"""
    upstream_ms: Number | None
    """from the farthest node of what the element reads, one way; null if it is not known or there is none"""
    downstream_ms: Number | None
    """to the farthest node of what reads from the element, one way"""
    state: Literal["standby", "backup", "none"]
    """what it has of the element's state: a copy that follows, the newest checkpoint, or nothing"""
    warnings: list[str]
    """what speaks against moving it there; a person may do it all the same"""


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
"""How long moving an element to a node takes."""


class Forecast(TypedDict):
    nodes: dict[str, NodeForecast]


class GroupAfter(TypedDict):
    """What would happen to a group if its node died now."""

    pipeline: str
    element: str
    """one of its elements"""
    titles: list[str]
    """of all its elements"""
    target: str | None
    """where it goes on; null if nowhere, see `reason`"""
    way: Literal["hot-standby", "checkpoint"] | None
    expected: Expected | None
    """from the order until it runs there"""
    bytes: int | None
    """to be fetched; 0 if it lies there already; null if the standby has everything, or no checkpoint is
    known yet"""
    by_itself: bool
    reason: str | None
    """why it does not go on automatically, or not at all"""


class NodeFailure(TypedDict):
    silence_s: Number
    """it counts as silent after this time"""
    groups: list[GroupAfter]
    backups: list[str]
    """groups that run elsewhere and have a copy of their checkpoint there"""


DidToLetters = Literal["drop", "put-back", "replay"]


class StayedLetter(TypedDict):
    offset: int
    why: str
    """why its row did not come back, as a sentence"""


class LettersCounted(TypedDict):
    """What an order about a reason would be about: its open letters, from an offset to before another."""

    letters: int
    first: int
    until: int
    """letters that come later lie here or behind"""
    more: bool
    """there are older letters, which were not counted"""


class LetterOrder(TypedDict):
    """What somebody asked to be done about dead letters."""

    id: str
    did: DidToLetters
    reason: str
    """why the rows are letters, as their group is called; empty if that was not said"""
    text: str
    """only letters of the reason in which it stands; empty for all"""
    letters: int
    """how many were open when it was ordered"""
    mended: bool
    """the rows came back with other values"""
    status: Literal["pending", "done", "failed", "cancelled"]
    cancel_requested: bool
    """somebody asked for its end; it ends before its next 1,000 offsets"""
    message: str
    """why it failed"""
    taken: int
    """for how many letters it was done, so far"""
    before: int
    """for how many something had been done before, or the topic no longer had them"""
    stayed: list[StayedLetter]
    """rows that did not come back, the first ones of `stayed_count`"""
    stayed_count: int
    may_be_put_back: bool
    at: str
    by: str | None
