"""What an operation's next step is decided from, and the steps that there are: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline_runtime.placement.choose import Placed
from workers.control.operations.phases import Kind, OperationPhase

GroupFault = Mapping[str, Any]
"""{element, path, message, code, title, traceback?}, as the dashboard shows it."""


@dataclass(frozen=True)
class Progress:
    """An operation as it is persisted."""

    kind: Kind
    phase: OperationPhase
    deadline_ms: int | None = None
    error: str = ""  # why a deployment gives up: what it has made is being cleared away
    groups: tuple[str, ...] = ()  # of an upgrade: to change yet; in ORDER and OWN it is at the first
    added: tuple[str, ...] = ()  # of an upgrade: groups that come, and do not run yet
    removed: tuple[str, ...] = ()  # of an upgrade: groups that go next, and may run yet
    later: tuple[str, ...] = ()  # of an upgrade: groups that go when those have gone
    gives: frozenset[str] = frozenset()  # those of them where others go on reading
    asks: bool = (
        False  # of SETTLE, ORDER and START: some begin where others stop, or have rows to read before
    )
    obsolete: bool = False  # of an upgrade: there are topics that nobody needs then
    orders: int = 0  # to own, that this one was given
    failing: Mapping[str, int] = field(default_factory=dict)  # group -> since when it shows an error, ms


@dataclass(frozen=True)
class GroupSeen:
    """A group that is placed, and what its node says of the generation that was ordered."""

    group: str
    title: str  # what people call it
    element: str  # its first, at which its faults are shown
    node: str
    node_up: bool
    state: str | None = None  # "starting"; None: its node has not reported it
    owns: bool = False  # by its newest order
    error: str | None = None
    traceback: str | None = None
    refused: str | None = None  # why the newest order was
    retired: bool = False
    wanted: bool = True  # its owner was not let go of yet
    moving: bool = False


@dataclass(frozen=True)
class Unplaced:
    message: str
    faults: tuple[GroupFault, ...]
    passing: bool  # nodes that are starting may change it


@dataclass(frozen=True)
class Answer:
    """Kafka's, to what was asked for in this phase. No text in it: it is done."""

    at_ms: int
    refused: str = ""  # with the names of the topics, without a full stop
    away: str = ""  # it did not answer: likewise
    unread: str = ""  # what is waited for, in words: rows that are to be read first
    starts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # group -> ClaimOrder.positions


@dataclass(frozen=True)
class Observed:
    """What the phase depends on; the rest may be left out."""

    status: str  # the deployment's
    heard_since_ms: int | None = 0  # since when nodes are heard without a break; None: they are not
    invalid: str | None = None  # what is wrong with the document
    faults: tuple[GroupFault, ...] = ()  # of the document
    placement: Mapping[str, Placed] | Unplaced = field(default_factory=dict)  # by group
    kafka: Answer | None = None  # None: it was not asked yet by this process
    new_topics: bool = False  # of an upgrade, before TOPICS: there are some to make
    groups: tuple[GroupSeen, ...] = ()
    unsettled: tuple[str, ...] = ()  # what else of the deployment has not ended, in words
    running: tuple[str, ...] = ()  # copies on nodes that answer, in words
    unconfirmed: tuple[str, ...] = ()  # copies, on any node, of those that give and did not confirm their end


@dataclass(frozen=True)
class Enter:
    phase: OperationPhase
    deadline_ms: int | None


@dataclass(frozen=True)
class Wait:
    for_what: str  # in words


@dataclass(frozen=True)
class CreateTopics:
    pass


@dataclass(frozen=True)
class DeleteTopics:
    pass


@dataclass(frozen=True)
class ReadPositions:
    """Where others have stopped from whom the groups at work go on."""


@dataclass(frozen=True)
class OrderOwners:
    """With it RUN begins. It comes to nothing when one of these nodes was cordoned at the same moment."""

    placement: Mapping[str, Placed]  # by group
    deadline_ms: int


@dataclass(frozen=True)
class OrderAgain:
    """The group's order was refused: another one, over the newest epoch that is known."""

    group: str


@dataclass(frozen=True)
class GiveUp:
    """What the deployment has made is cleared away: STOP begins."""

    message: str
    faults: tuple[GroupFault, ...]
    deadline_ms: int


@dataclass(frozen=True)
class Fail:
    message: str  # why
    faults: tuple[GroupFault, ...] = ()
    overtaken: bool = False  # by an undeployment, which says the rest


@dataclass(frozen=True)
class Done:
    left_over: str = ""  # what of it could not be cleared away, as a sentence


Step = (
    Enter
    | Wait
    | CreateTopics
    | DeleteTopics
    | ReadPositions
    | OrderOwners
    | OrderAgain
    | GiveUp
    | Fail
    | Done
)
