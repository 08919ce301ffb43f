"""The SDK of connectors: the classes that an author derives from, and the objects that Fogline passes to
them.

- `Ingester.run` reads from a system and hands records to `Intake.put`: at least once.
- `OnceIngester.run` reads from a system that gives the same rows again, and hands records and its position to
  `OnceIntake.commit`: exactly once.
- `Deliverer.deliver` gives rows to a system.
- `Probe` tries a connection and shows what is there, and `Search` looks for a name there.

Each raises ConnectorError with words for a person when the system cannot be used. The runtime then shows
these words at the element, waits (`backoff`), and begins again. Nothing here knows Kafka, so `trial` runs a
connector without it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from pipeline_runtime.model.connectors import VALUE_MAX, Found
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.connections import ConnectionFields

CONNECT_S = 5.0
"""The longest that a connector waits for an answer while it connects, so that words come within 10 s."""
ROOM_S = 0.5
UNREAD_S = 60.0
"""So long an exactly-once ingester waits for its pipeline before it says so."""
PATIENCE_S = 8.0
"""Whoever waits for the system for so long is told of at the element, if its `patience_s` is not longer."""


class ConnectorError(Exception):
    """The system cannot be used now. The message says what is wrong and where, and what to do if that is not
    plain; it holds no secret. `lasting` says that only a change of the parameters or the connection ends it.
    It is then tried again once a minute. `wait_s`: the system asks not to be tried sooner."""

    def __init__(self, message: str, *, lasting: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.wait_s = wait_s


P = TypeVar("P")
C = TypeVar("C", bound="ConnectionFields | None")


@dataclass(frozen=True)
class Place(Generic[P, C]):
    """What a connector knows of where it works."""

    deployment: str
    element: str
    params: P  # the operator's Params
    connection: C  # the ConnectionFields of the kind that the operator names
    group: str = ""  # whose owners `Deliverer.open` numbers
    rows: StreamSchema | None = None  # of a deliverer: the columns of its rows
    # The connections that other parameters than `connection` name, by parameter.
    others: Mapping[str, ConnectionFields] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Returns the same name for each run of this element, on any node: a client's name for the system."""
        return f"fogline-{self.deployment}-{self.element}"


@dataclass(frozen=True, slots=True)
class Record:
    """A record for the element's topic. One that is no JSON object becomes a dead letter, with its text."""

    value: bytes
    time_ms: int | None = None  # without one, the time of its arrival counts
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()  # only a OnceIntake takes them


Done = Callable[[], None]


class Intake(Protocol):
    """Where an ingester puts what it has read. All methods may be called from any thread."""

    def put(self, records: Sequence[Record], done: Done | None = None) -> bool:
        """Takes records, and returns at once. Calls `done` when all of them are in Kafka or on the node's
        disk; only then may the system be told so.

        Returns False if there is no room for them: then nothing was taken. Tell the system to wait, or let it
        send them again. Without `done` the system can do neither: what finds no room is counted as a gap.
        """
        ...

    def put_durably(self, records: Sequence[Record], timeout_s: float) -> bool:
        """Returns whether all of them were durable within that time. If not, they may become so later."""
        ...

    def connected(self) -> None:
        """Tells that the system is connected and answers. Call it again and again if you like."""
        ...

    def failing(self, why: str) -> None:
        """Tells what fails while `run` goes on by itself. `connected` ends it."""
        ...

    def gap(self, why: str, rows: int | None = None) -> None:
        """Tells that rows were lost, and how many, if that is known."""
        ...


class Ingester(ABC, Generic[P, C]):
    """Reads from a system. One object lives as long as its process."""

    patience_s: float = PATIENCE_S
    """If `run` has not looked at `stop` for longer, the element says so. After 4 s more it hangs: its process
    is ended and started again."""

    def __init__(self, place: Place[P, C]) -> None:
        self.place = place

    def beats(self) -> int | None:
        """Returns a number that a thread of the library raises at least once a second, or None while there
        is none. If it stays the same for 8 s, the library hangs. Called by another thread."""
        return None

    @property
    def system_waits(self) -> bool:
        """Returns whether the system keeps its rows, or sends them again, until it is told that they are
        durable. If not, the runtime tells a gap when the element begins again, on this node or another."""
        return False

    @abstractmethod
    def run(self, intake: Intake, stop: threading.Event) -> None:
        """Reads until `stop` is set, then returns within 2 s, disconnected. Raises ConnectorError. It is
        called again after that, so it connects each time."""

    def for_preview(self) -> Ingester[P, C]:
        """Returns what reads for a preview, beside the element that may run. It takes no row away from that
        element, writes nothing to the system, and lets the system keep nothing for it."""
        return self

    def missed_in(self, pause_s: float) -> int | None:
        """Returns how many rows were lost between the last row of an earlier process and the first answer to
        this one, or None if that is not known. With 0 no gap is told. Not asked if the system waits."""
        return None

    def tell_left(self, intake: Intake) -> None:
        """Called after `run`, or by another thread while `run` hangs, before the process ends: tells the gaps
        that it has counted and not told. Those since its last row are told by the next process."""
        return None

    def forget(self) -> None:
        """Called after `run` when the element has gone for good: removes what the system keeps for it."""
        return None


class OnceIntake(Protocol):
    """Where a OnceIngester puts what it has read. Used by the thread that runs it."""

    @property
    def position(self) -> Any:
        """Returns the position that was committed last, by whichever process, or None."""
        ...

    def commit(self, records: Sequence[Record], position: Any) -> bool:
        """Commits the records and the position behind them, JSON data, as one: both or none.

        Returns False if the element has not yet read enough of what it was given: then nothing was taken.
        Raises ConnectorError if Kafka does not answer, or a later owner's process has begun. `run` then ends,
        and a next one begins at the position that was committed.
        """
        ...

    def connected(self) -> None:
        """As Intake.connected."""
        ...

    def failing(self, why: str) -> None:
        """As Intake.failing."""
        ...

    def gap(self, why: str, rows: int | None = None) -> None:
        """As Intake.gap."""
        ...


class OnceIngester(ABC, Generic[P, C]):
    """Reads from a system that gives the rows behind a position again, for as long as it is asked. Its
    operator says `delivery = "exactly once"`. One object lives as long as its process."""

    patience_s: float = PATIENCE_S
    """As of an Ingester."""

    def __init__(self, place: Place[P, C]) -> None:
        self.place = place

    def beats(self) -> int | None:
        """As of an Ingester."""
        return None

    @abstractmethod
    def run(self, intake: OnceIntake, stop: threading.Event) -> None:
        """Reads from `intake.position` on until `stop` is set, then returns within 2 s, disconnected. Raises
        ConnectorError. It is called again after that, so it connects each time."""

    def commit(
        self, intake: OnceIntake, records: Sequence[Record], position: Any, stop: threading.Event
    ) -> bool:
        """Commits as soon as there is room, and says at the element if that takes long. Returns False if it
        is stopped before."""
        began_s, told = monotonic(), False
        while not intake.commit(records, position):
            if stop.wait(ROOM_S):
                return False
            if not told and monotonic() - began_s > UNREAD_S:
                told = True
                intake.failing(
                    "The pipeline has not yet read what this element brought in, so it brings in no more. "
                    "Does the pipeline run? Nothing is lost: the rows wait in their system."
                )
        if told:
            intake.connected()
        return True


@dataclass(frozen=True)
class Refused:
    """A row that the system does not take, whenever it is tried. It becomes a dead letter."""

    row: int  # its place among the rows that were to be delivered
    reason: str


@dataclass(frozen=True)
class Batch:
    """Rows to deliver, in order, from the offset `first` to before `end` of the element's stream."""

    rows: Sequence[Mapping[str, Any]]  # the columns of the input
    times_ms: Sequence[int]  # their event times
    offsets: Sequence[int]
    first: int
    end: int


@dataclass(frozen=True)
class Noted:
    """How far a system that keeps the position had the rows, by Fogline's own record. It may lack the last
    batch."""

    end: int = 0  # the offset after the last row; 0: none was delivered
    mark: Mapping[str, str] = field(default_factory=dict)  # `Deliverer.mark` when it was noted
    is_past: bool = False  # the stream ends before it: it was made again


class Notes(Protocol):
    """Fogline's own record. All methods raise ConnectorError."""

    def noted(self) -> Noted | None:
        """Returns None if the record is not there. An operator without one (`ConnectorSink.noted`) has none
        delivered."""

    def note(self, noted: Noted) -> None: ...

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        """Notes what `changed` makes of what was noted last. Each process of the element sees what the one
        before it has noted so, also if several do it at once. Nothing is noted if `changed` raises."""
        ...


class Deliverer(ABC, Generic[P, C]):
    """Gives rows to a system. One object lives as long as its process.

    After an error `close` and `open` are called, and the same rows come again: at least once. A deliverer
    that stores `Batch.end` in the same transaction as the rows, commits it in `settle`, and returns it in
    `position`, is exactly once.
    """

    batch_rows: int = 500
    """The most rows of one batch."""
    patience_s: float = PATIENCE_S
    """If a method has not returned for longer, and has not called `goes_on`, the element says so. After 4 s
    more it hangs: its process is ended and started again."""

    def __init__(self, place: Place[P, C]) -> None:
        self.place = place
        self.goes_on: Callable[[], None] = lambda: None
        """Call it whenever the system has answered, if a batch takes many answers."""
        self.notes: Notes
        """Fogline's own record, from before `open` on. A deliverer whose system keeps the position asks it
        only if the system has lost that. Another one may keep a mark there."""
        self.mark: Mapping[str, str] = {}
        """What is noted beside each position."""

    def beats(self) -> int | None:
        """As of an Ingester."""
        return None

    @abstractmethod
    def open(self, epoch: int) -> None:
        """Connects. Raises ConnectorError. `epoch` rises with each owner of the group: a system that keeps
        the position refuses owners of earlier epochs by it."""

    def position(self) -> int | None:
        """Returns the offset after the last row that the system has, if the system keeps it; else None.
        Called after `open`. A new system has 0."""
        return None

    @abstractmethod
    def deliver(self, batch: Batch) -> Sequence[Refused]:
        """Returns when the system has all rows, but those that it does not take at all. Raises
        ConnectorError."""

    def settle(self) -> None:
        """Called after `deliver`, when the rows that were refused are in the dead letters. A deliverer that
        keeps the position commits here, so that no refused row is lost. Raises ConnectorError."""
        return None

    def idle(self) -> None:
        """Called each second without rows. Raises ConnectorError if the connection was lost meanwhile."""
        return None

    def close(self) -> None:
        """Disconnects. Called after an error too, perhaps without a former `open`. Raises nothing."""
        return None


@dataclass(frozen=True)
class Probed:
    """What a probe has found."""

    words: str
    rows: tuple[dict[str, Any], ...] = ()
    found: tuple[Found, ...] = ()


class Probe(Protocol):
    """Tries a connection, within 6 s. `path`: what of `Found` to look into; empty: the whole."""

    def __call__(self, connection: Any, path: str) -> Probed:
        """Raises ConnectorError."""
        ...


class Search(Protocol):
    """Looks for what has a name with `find` in it, anywhere in the system, within 6 s."""

    def __call__(self, connection: Any, find: str) -> Probed:
        """Raises ConnectorError."""
        ...


def shown_value(value: Any) -> str | int | float | bool | None:
    """Returns a value as it is shown to people: a long text is cut."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)[:VALUE_MAX]
