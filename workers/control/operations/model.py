"""The facts that decide an operation's next step, and the possible steps: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline_runtime.placement.choose import Placed
from workers.control.operations.phases import Kind, OperationPhase

GroupFault = Mapping[str, Any]
"""{element, path, message, code, title, traceback?}, as the dashboard shows it."""


@dataclass(frozen=True)
class Undelivered:
    """The rows that wait at an element which delivers to a system outside."""

    element: str
    title: str  # what people call it
    group: str
    rows: int | None  # None if Kafka did not say it
    at: int = 0  # the offset in its stream after the last row that is delivered
    estimated: bool = False  # there are about so many
    why: str = ""  # why its connector fails, without a full stop
    topic: str = ""  # the stream, but for unread rows that are counted: these may lie in several
    unread: bool = False  # the element itself has not read them, so it has put nothing out for them


@dataclass(frozen=True)
class Progress:
    """An operation as it is stored. `groups`, `added` and `removed` belong to upgrades only."""

    kind: Kind
    phase: OperationPhase
    deadline_ms: int | None = None
    error: str = ""  # why a deployment gives up; what it has made is being cleared away
    groups: tuple[str, ...] = ()  # still to change; ORDER and OWN are at the first
    added: tuple[str, ...] = ()  # to add, and do not run yet
    removed: tuple[str, ...] = ()  # to remove next, and may still run
    later: tuple[str, ...] = ()  # to remove when those have gone; of an undeployment, to end when others have
    gives: frozenset[str] = frozenset()  # groups to remove from which others go on
    # In SETTLE, ORDER and START: some groups begin where others stop, or have rows to read first.
    asks: bool = False
    obsolete: bool = False  # an upgrade leaves topics that nobody needs
    orders: int = 0  # to own, given to the group at work
    failing: Mapping[str, int] = field(default_factory=dict)  # group -> since when it shows an error, ms
    delivers: bool = False  # of the groups that end, some have elements that deliver to systems outside
    undelivered: tuple[Undelivered, ...] = ()  # of these elements, as it was counted last
    hurries: bool = False  # a user does not want to wait for deliveries


@dataclass(frozen=True)
class GroupSeen:
    """A placed group, and what its node reports of the ordered generation."""

    group: str
    title: str  # what people call it
    element: str  # its first one, at which its faults are shown
    node: str
    node_up: bool
    state: str | None = None  # such as "starting", or None if its node has not reported it
    owns: bool = False  # by its newest order
    error: str | None = None
    traceback: str | None = None
    refused: str | None = None  # why the newest order was refused
    retired: bool = False
    wanted: bool = True  # whether it is still to have an owner
    ends: bool = True  # it was told to end for good
    paused: bool = False
    takes_in: str = ""  # a node on which an ingester works, or what it has left goes to Kafka
    moving: bool = False


@dataclass(frozen=True)
class Unplaced:
    message: str
    faults: tuple[GroupFault, ...]
    passing: bool  # whether nodes that are starting may change it


@dataclass(frozen=True)
class Answer:
    """Kafka's answer to what this phase asked for. Without any text, it was done."""

    at_ms: int
    refused: str = ""  # why, with the names of the topics, without a full stop
    away: str = ""  # that Kafka did not answer, without a full stop
    unread: str = ""  # which rows have to be read first, in words
    starts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # group -> ClaimOrder.positions
    undelivered: tuple[Undelivered, ...] = ()  # of all elements that deliver, also if Kafka is away
    noted: bool = False  # `undelivered` was stored: one answer is stored once


@dataclass(frozen=True)
class Observed:
    """What the phase depends on. The rest may be left out."""

    status: str  # the deployment's
    heard_since_ms: int | None = 0  # since when nodes are heard, None if they are not
    invalid: str | None = None  # what is wrong with the document
    faults: tuple[GroupFault, ...] = ()  # of the document
    placement: Mapping[str, Placed] | Unplaced = field(default_factory=dict)  # by group
    kafka: Answer | None = None  # None if this process has not asked yet
    new_topics: bool = False  # before TOPICS of an upgrade: there are some to make
    groups: tuple[GroupSeen, ...] = ()
    unsettled: tuple[str, ...] = ()  # what else is under way, in words
    running: tuple[str, ...] = ()  # copies on nodes that answer, in words
    # Copies of groups from which others go on and that did not confirm their end, in words.
    unconfirmed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Enter:
    phase: OperationPhase
    deadline_ms: int | None


@dataclass(frozen=True)
class Wait:
    for_what: str  # in words
    outdated: bool = False  # what Kafka has answered does not count any more


@dataclass(frozen=True)
class CreateTopics:
    pass


@dataclass(frozen=True)
class DeleteTopics:
    pass


@dataclass(frozen=True)
class ReadPositions:
    """Asks where the groups have stopped from which the groups at work go on; in an undeployment, whether the
    groups that end next have read all."""


@dataclass(frozen=True)
class CountUndelivered:
    """Asks Kafka how many rows wait at the deliverers."""


@dataclass(frozen=True)
class NoteUndelivered:
    """Stores what was counted, and until when the next row is waited for."""

    undelivered: tuple[Undelivered, ...]
    deadline_ms: int | None


@dataclass(frozen=True)
class OrderOwners:
    """Orders groups to own: RUN begins. Nothing is ordered if a node was cordoned at the same moment."""

    placement: Mapping[str, Placed]  # by group
    deadline_ms: int


@dataclass(frozen=True)
class OrderAgain:
    """Gives a group whose order was refused another one, over the newest epoch that is known."""

    group: str


@dataclass(frozen=True)
class GiveUp:
    """Clears away what the deployment has made: STOP begins."""

    message: str
    faults: tuple[GroupFault, ...]
    deadline_ms: int
    code: str = field(default="", compare=False)  # the page about it: one of error_codes.IN_ORDERS


@dataclass(frozen=True)
class Fail:
    message: str  # why
    faults: tuple[GroupFault, ...] = ()
    overtaken: bool = False  # an undeployment ended it, and tells the rest
    code: str = field(default="", compare=False)  # empty where GiveUp has told it before


@dataclass(frozen=True)
class Done:
    left_over: str = ""  # what could not be cleared away, as a sentence


Step = (
    Enter
    | Wait
    | CreateTopics
    | DeleteTopics
    | ReadPositions
    | CountUndelivered
    | NoteUndelivered
    | OrderOwners
    | OrderAgain
    | GiveUp
    | Fail
    | Done
)
