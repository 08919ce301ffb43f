"""The SDK of connectors: the classes that an author derives from, and the objects that Fogline passes to
them.

- `Ingester.run` reads from a system and hands records to `Intake.put`: at least once.
- `OnceIngester.run` reads from a system that can send the same rows again, and hands records and its position
  to `OnceIntake.commit`: exactly once.
- `Deliverer.deliver` writes rows to a system.
- `Probe` tries a connection and shows what the system has, and `Search` looks for a name in the system.

Each raises ConnectorError when the system cannot be used. The runtime shows the error's message at the
element, waits (`backoff`), and begins again. This module does not use Kafka, so `trial` can run a connector
without Kafka.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from pipeline_runtime.model.connectors import PARTS_MAX, ROWS_SHOWN, VALUE_MAX, Found, Offer
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.connections import ConnectionFields

CONNECT_S = 5.0
"""The longest time in s that a connector waits for an answer while it connects. It is short enough that the
element shows an error within 10 s."""
ROOM_S = 0.5
UNREAD_S = 60.0
"""After this time in s, the element shows that an exactly-once ingester waits for its pipeline."""
TELL_S = 5.0
"""After this time in s without progress, the element shows that its connector waits for the system. It is
short enough that people see it within 10 s, however long one answer may take."""
PATIENCE_S = 8.0
"""How long in s a connector may wait for one answer. A connector may set a longer `patience_s`."""


class ConnectorError(Exception):
    """The system cannot be used now. The message says what is wrong and where. It says what to do if that is
    not plain. It holds no secret.

    `lasting`: only a change of the parameters or of the connection ends the error. The runtime then tries the
    system once a minute. `wait_s`: the system wants no attempt before this time in s is over. `offer`: what
    an admin may accept at *Test connection*, which then ends the error.
    """

    def __init__(
        self, message: str, *, lasting: bool = False, wait_s: float = 0.0, offer: Offer | None = None
    ) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.wait_s = wait_s
        self.offer = offer


P = TypeVar("P")
C = TypeVar("C", bound="ConnectionFields | None")


@dataclass(frozen=True)
class Place(Generic[P, C]):
    """The element that a connector works for, its parameters and its connections."""

    deployment: str
    element: str
    params: P  # the operator's Params
    connection: C  # the ConnectionFields of the kind that the operator names
    group: str = ""  # the group whose owners have the epochs of `Deliverer.open`
    rows: StreamSchema | None = None  # the columns of a deliverer's rows
    # Parameter -> its connection, for the parameters beside `connection`.
    others: Mapping[str, ConnectionFields] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Returns a client name for the system. It is the same for each run of this element, on any node."""
        return f"fogline-{self.deployment}-{self.element}"


@dataclass(frozen=True, slots=True)
class Record:
    """A record for the element's topic. If it is no JSON object, it becomes a dead letter with its text."""

    value: bytes
    time_ms: int | None = None  # ms since 1970; None stands for the time of the record's arrival
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()  # only a OnceIntake takes them


Done = Callable[[], None]


class Intake(Protocol):
    """Takes the records that an ingester has read. All methods may be called from any thread."""

    def put(self, records: Sequence[Record], done: Done | None = None) -> bool:
        """Takes records, and returns at once. Calls `done` when all of them are in Kafka or on the node's
        disk. Acknowledge them to the system only then.

        Returns False if there is no room for them, and then takes none of them. Make the system wait, or let
        it send them again. If the system can do neither, call `put` without `done`. Records without room are
        then counted as a gap.
        """
        ...

    def put_durably(self, records: Sequence[Record], timeout_s: float) -> bool:
        """Takes records, and waits. Returns whether all of them were durable within `timeout_s`. If not, they
        may become durable later."""
        ...

    def connected(self) -> None:
        """Reports that the system is connected and answers. You may call it as often as you like."""
        ...

    def failing(self, why: str) -> None:
        """Shows `why` at the element while `run` goes on. A call of `connected` removes it."""
        ...

    def gap(self, why: str, rows: int | None = None) -> None:
        """Reports lost rows. `rows`: how many, or None if that is not known."""
        ...


class Ingester(ABC, Generic[P, C]):
    """Reads from a system. One object lives as long as its process."""

    patience_s: float = PATIENCE_S
    """How long in s `run` may go without looking at `stop`. The element shows after TELL_S that it waits.
    4 s after `patience_s` the connector counts as hanging: its process ends, and the node starts it
    again."""

    def __init__(self, place: Place[P, C]) -> None:
        self.place = place

    def beats(self) -> int | None:
        """Returns a number that a thread of the library raises at least once a second. Returns None while the
        library has no such thread. If the number stays the same for 12 s, the library counts as hanging.
        Another thread than that of `run` calls this."""
        return None

    @property
    def system_waits(self) -> bool:
        """Returns whether the system keeps its rows, or sends them again, until they are acknowledged. If it
        does not, the runtime reports a gap when the element begins again, on this node or another."""
        return False

    @abstractmethod
    def run(self, intake: Intake, stop: threading.Event) -> None:
        """Connects, and reads until `stop` is set. Then disconnects and returns within 2 s. Raises
        ConnectorError. The runtime calls it again after an error."""

    def for_preview(self) -> Ingester[P, C]:
        """Returns an ingester for a preview. The element may run at the same time. The ingester takes no row
        away from the element, writes nothing to the system, and leaves nothing behind there."""
        return self

    def missed_in(self, pause_s: float) -> int | None:
        """Returns how many rows were lost in a pause of `pause_s`. The pause lasts from the last row of an
        earlier process to the first answer to this process. Returns None if the number is not known. After 0
        the runtime reports no gap. The runtime does not call this if `system_waits` is true."""
        return None

    def tell_left(self, intake: Intake) -> None:
        """Reports the gaps that were counted and not yet reported. The runtime calls this before the process
        ends: after `run`, or by another thread while `run` hangs. The next process reports the gaps since the
        last row."""
        return None

    def forget(self) -> None:
        """Removes what the system keeps for the element. The runtime calls this after `run` when the element
        has gone for good."""
        return None


class OnceIntake(Protocol):
    """Takes the records that a OnceIngester has read, with its position. Only the thread of `run` uses it."""

    @property
    def position(self) -> Any:
        """Returns the position of the last commit of any process of the element, as JSON data. Returns None
        if there was no commit."""
        ...

    def commit(self, records: Sequence[Record], position: Any) -> bool:
        """Commits the records and the position behind them in one transaction. `position` is JSON data.

        Returns False if the element has too many unread records, and then takes nothing. Raises
        ConnectorError if Kafka does not answer, or if a later owner's process has begun. `run` then ends, and
        the next `run` begins at the committed position.
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
    """Reads from a system that can send the rows behind a position any number of times. Its operator has
    `delivery = "exactly once"`. One object lives as long as its process."""

    patience_s: float = PATIENCE_S
    """As of an Ingester."""

    def __init__(self, place: Place[P, C]) -> None:
        self.place = place

    def beats(self) -> int | None:
        """As of an Ingester."""
        return None

    @abstractmethod
    def run(self, intake: OnceIntake, stop: threading.Event) -> None:
        """Connects, and reads from `intake.position` on until `stop` is set. Then disconnects and returns
        within 2 s. Raises ConnectorError. The runtime calls it again after an error."""

    def commit(
        self, intake: OnceIntake, records: Sequence[Record], position: Any, stop: threading.Event
    ) -> bool:
        """Commits as soon as there is room. Shows at the element when the wait takes longer than UNREAD_S.
        Returns False if `stop` is set before. Raises ConnectorError as `intake.commit` does."""
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
    """A row that the system refuses on each attempt. It becomes a dead letter."""

    row: int  # its index in `Batch.rows`
    reason: str


@dataclass(frozen=True)
class Batch:
    """Rows to deliver, in their order, from the offset `first` to before `end` of the element's stream."""

    rows: Sequence[Mapping[str, Any]]  # column of the input -> value, for each row
    times_ms: Sequence[int]  # the event time of each row, ms since 1970
    offsets: Sequence[int]  # the offset of each row
    first: int
    end: int


@dataclass(frozen=True)
class Noted:
    """Fogline's own record of the position that the system keeps. The record may lack the last batch."""

    end: int = 0  # the offset after the last delivered row; 0: no row was delivered
    mark: Mapping[str, str] = field(default_factory=dict)  # `Deliverer.mark` when this was noted
    is_past: bool = False  # the stream ends before `end`, because it was made again


class Notes(Protocol):
    """Reads and writes Fogline's own record. All methods raise ConnectorError."""

    def noted(self) -> Noted | None:
        """Returns the record, or None if the record is missing. If the operator keeps no record
        (`ConnectorSink.noted`), returns a record without a delivered row."""

    def note(self, noted: Noted) -> None: ...

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        """Passes the newest record to `changed`, and stores the result. Stores nothing if `changed` raises.

        If several processes of the element call this at once, only the last one to begin stores its result.
        The others raise ConnectorError. So no process overwrites a record that it has not read.
        """
        ...


class Deliverer(ABC, Generic[P, C]):
    """Writes rows to a system. One object lives as long as its process.

    After an error the runtime calls `close` and `open`, and then delivers the same rows again. So each row
    arrives at least once. For exactly once, store `Batch.end` in the transaction of the rows, commit that
    transaction in `settle`, and return the stored offset from `position`.
    """

    batch_rows: int = 500
    """The most rows of one batch."""
    patience_s: float = PATIENCE_S
    """How long in s a method may neither return nor call `goes_on`. The element shows after TELL_S that it
    waits. 4 s after `patience_s` the connector counts as hanging: its process ends, and the node starts it
    again."""

    def __init__(self, place: Place[P, C]) -> None:
        self.place = place
        self.goes_on: Callable[[], None] = lambda: None
        """Call it after each answer of the system, if a batch takes many answers."""
        self.notes: Notes
        """Fogline's own record. It is set before `open`. A deliverer whose system keeps the position reads it
        only if the system has lost the position. Any other deliverer may keep a mark there."""
        self.mark: Mapping[str, str] = {}
        """Data that the runtime notes beside each position."""

    def beats(self) -> int | None:
        """As of an Ingester."""
        return None

    @abstractmethod
    def open(self, epoch: int) -> None:
        """Connects. Raises ConnectorError. Each owner of the group has a greater `epoch` than the owner
        before it. With it, a system that keeps the position can refuse earlier owners."""

    def position(self) -> int | None:
        """Returns the offset after the last row that the system has. Returns 0 for a system without rows, and
        None if the system does not keep the position. The runtime calls this after `open`."""
        return None

    @abstractmethod
    def deliver(self, batch: Batch) -> Sequence[Refused]:
        """Writes the rows, and returns when the system has all of them. Returns the rows that the system
        refuses. Raises ConnectorError."""

    def settle(self) -> None:
        """Commits, if the system keeps the position. The runtime calls this after `deliver`, when the refused
        rows are in the dead letters. So no refused row is lost. Raises ConnectorError."""
        return None

    def idle(self) -> None:
        """Raises ConnectorError if the connection was lost. The runtime calls this every second without
        rows."""
        return None

    def close(self) -> None:
        """Disconnects. Raises nothing. The runtime also calls this after an error, and perhaps without an
        earlier `open`."""
        return None


@dataclass(frozen=True)
class Probed:
    """The result of a probe or a search."""

    words: str  # a sentence for people
    rows: tuple[dict[str, Any], ...] = ()  # column -> value, of each row that is shown
    found: tuple[Found, ...] = ()


class Probe(Protocol):
    """Tries a connection. `path` names the `Found` to look into. An empty `path` stands for the whole system.
    The node ends a process that has not answered within 12 s."""

    def __call__(self, connection: Any, path: str) -> Probed:
        """Raises ConnectorError."""
        ...


class Search(Protocol):
    """Finds, anywhere in the system, what has `find` in its name. Its time is that of a Probe."""

    def __call__(self, connection: Any, find: str) -> Probed:
        """Raises ConnectorError."""
        ...


def shown_value(value: Any) -> str | int | float | bool | None:
    """Returns a value in the form that people see. A list or an object becomes its JSON. A long text is cut
    to VALUE_MAX characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return _shown_text(str(value))


def shown_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Returns the first ROWS_SHOWN rows in the form that people see, with PARTS_MAX values of each."""
    return tuple(
        {_shown_text(name): shown_value(value) for name, value in islice(row.items(), PARTS_MAX)}
        for row in islice(rows, ROWS_SHOWN)
    )


def _shown_text(text: str) -> str:
    # A half of a pair of UTF-16 cannot be sent on.
    return text[:VALUE_MAX].encode(errors="replace").decode()
