"""The records of a journal.

| record | written by | means |
|---|---|---|
| COMMIT | the owner | the batch `seq` is processed: its outputs are in the same transaction |
| CLAIM | a forced successor | `epoch` owns from here on |
| ARMED | a designated successor | it has initialised the id of `epoch`; grants nothing |
| ANNOUNCE | the owner | the boundary of the batch that it is about to begin; grants nothing |
| RELEASE | the owner | `epoch` has ended with `seq`; the holder of `token` owns the next one |
| RETIRE | the owner | the group has ended: nobody claims after it |
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipeline_runtime.model.ids import Epoch, Seq

SPEC_BYTES_MAX = 100_000
"""The limit for a definition in a CLAIM. A slow line has to bring it to the broker within the time of a
transaction."""

Ends = dict[str, Any]
"""The position in each input: "<topic>-<partition>" -> offset, a source element's id -> its position."""
END_STAGE = "#end"
"""A key beside these positions in a boundary: how far the ending of a finished group has come."""
TOPIC_IDS = "#topics"
"""A key beside these positions: the id of each topic of the users' own. A topic that is deleted and created
again has another one."""
LEFT_OUT = "#left-out"
"""A key beside these positions: by partition, how many offsets were left out because their records had been
deleted before they were read."""
Digests = dict[str, dict[str, str]]
"""A schema registry's connection -> a number -> RegisteredSchema.digest of the schema that it stands for."""
ENDED = "#ended"
"""A key beside these positions of a group that others continue: a list of the inputs that it read to their
end."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a batch ends: its Seq, the position in each input, and its time."""

    seq: Seq
    ends: Ends
    batch_time_ms: int

    def to_json(self) -> dict[str, Any]:
        return {"seq": self.seq, "ends": self.ends, "batch_time": self.batch_time_ms}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Boundary:
        return Boundary(Seq(data["seq"]), data["ends"], data["batch_time"])


ElementCounts = dict[str, tuple[int | None, int | None, int]]
"""The rows in and out, and the dead letters, of each element, if the group has several elements. Rows in or
out are None if only Spark saw them."""
_UNKNOWN = (None, None, 0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts the rows of all batches that the group ever committed, even those that a rewind made void."""

    rows_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    elements: ElementCounts = field(default_factory=dict)

    def plus(self, rows_in: int, rows_out: int, dead_letters: int, elements: ElementCounts) -> Totals:
        """Returns the totals with one more batch."""
        return Totals(
            self.rows_in + rows_in,
            self.rows_out + rows_out,
            self.dead_letters + dead_letters,
            _each(self.elements, elements, lambda total, more: total + more),
        )

    def most(self, other: Totals) -> Totals:
        """Returns the greater of both, count by count."""
        return Totals(
            max(self.rows_in, other.rows_in),
            max(self.rows_out, other.rows_out),
            max(self.dead_letters, other.dead_letters),
            _each(self.elements, other.elements, max),
        )

    def risen_in(self, later: Totals) -> list[str]:
        """Returns the elements that have read more rows in `later`. If nobody knows what an element has read,
        its rows out count."""

        def rows(totals: Totals, id: str) -> int:
            read, written, _ = totals.elements.get(id, _UNKNOWN)
            return (written if read is None else read) or 0

        return [id for id in later.elements if rows(later, id) > rows(self, id)]

    @staticmethod
    def from_json(data: dict[str, Any]) -> Totals:
        """Returns the totals that `encode` has written as JSON."""
        elements = {id: (read, written, dead) for id, (read, written, dead) in data["elements"].items()}
        return Totals(data["rows_in"], data["rows_out"], data["dead_letters"], elements)


def _each(one: ElementCounts, other: ElementCounts, of: Callable[[int, int], int]) -> ElementCounts:
    """Returns the counts of all elements. Where both are known, it is what `of` says."""

    def joined(known: int | None, more: int | None) -> int | None:
        return known if more is None else more if known is None else of(known, more)

    found: ElementCounts = {}
    for id in [*one, *(id for id in other if id not in one)]:
        read, written, dead = one.get(id, _UNKNOWN)
        more_read, more_written, more_dead = other.get(id, _UNKNOWN)
        found[id] = (joined(read, more_read), joined(written, more_written), of(dead, more_dead))
    return found


@dataclass(frozen=True, slots=True)
class Commit:
    """The owner has processed a batch. It is in one transaction with the outputs of that batch."""

    epoch: Epoch
    boundary: Boundary
    rows_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    marks: dict[str, Any] = field(default_factory=dict)  # sink element -> its SinkWriter's mark
    ended: tuple[str, ...] = ()  # inputs that this batch read to their end
    node: str = ""
    definition: str = ""
    """The GroupSpec.version that processed the batch; an upgrade changes it."""
    wait_ms: int | None = None
    """How long the batch's oldest row had waited before it was committed. None if nobody knows when it
    came."""
    totals: Totals = field(default_factory=Totals)
    """The totals with this batch. So nobody has to read the whole journal, which may be trimmed, to know
    them."""
    schemas: Digests = field(default_factory=dict)
    """By which schemas the records of this batch and of those before it were read."""

    @property
    def seq(self) -> Seq:
        return self.boundary.seq


@dataclass(frozen=True, slots=True)
class Claim:
    """A replica has taken over the group, whatever the owner before it did. `epoch` owns from here on."""

    epoch: Epoch
    order: str
    node: str
    start: Ends = field(default_factory=dict)
    """Where a group's first batch begins. The first claim of a journal decides it for all replicas."""
    rewind: Seq | None = None
    """The seq from which the owner goes on. Later batches are void and are emitted again."""
    definition: str = ""
    """The GroupSpec.version that the owner goes on with."""
    spec: dict[str, Any] | None = None
    """The definition itself, as JSON. A replica that starts from an older checkpoint finds it nowhere else.
    It is None if the definition is larger than SPEC_BYTES_MAX."""
    fresh: bool = False
    """Whether the state begins empty here, because this definition cannot use the state of the former one.
    Inputs and the sinks' files go on where they stand."""
    moves: Ends | None = None
    """Where the first batch begins, if this definition reads other inputs than the one before. None if it
    begins where the last batch ended."""
    ended: tuple[str, ...] = ()
    """Inputs that the former group read to their end. This owner will not find their end marks any more."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A standby is ready to own `epoch`, as soon as the owner releases the group to its token."""

    epoch: Epoch  # the epoch that it would own
    token: str  # new for each initialisation, so that an owner cannot release to an earlier one
    order: str  # the handover's id
    node: str = ""
    round_trip_ms: float = 0.0  # the time of a request to the broker; 0 if it was not told
    listens: bool = False  # it also listens on GroupSpec.released


@dataclass(frozen=True, slots=True)
class Announce:
    """Announces a batch, so that a successor can run it at the same time. The COMMIT of this batch may never
    follow."""

    epoch: Epoch
    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Release:
    """The owner has given the group away with its last batch. The holder of `token` owns the next epoch."""

    epoch: Epoch  # the epoch that ends
    seq: Seq  # its last batch
    token: str  # the token of the ARMED that it releases to
    order: str
    node: str = ""  # of the successor


@dataclass(frozen=True, slots=True)
class Retire:
    """The group has ended for good. Nobody claims it after this."""

    epoch: Epoch
    node: str = ""


Record = Commit | Claim | Arm | Announce | Release | Retire
_KINDS: dict[str, type[Record]] = {
    "COMMIT": Commit,
    "CLAIM": Claim,
    "ARMED": Arm,
    "ANNOUNCE": Announce,
    "RELEASE": Release,
    "RETIRE": Retire,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class JournalDamaged(ValueError):
    """A journal holds a record that this version cannot read."""


def encode(record: Record) -> bytes:
    """Returns the record as the value of a Kafka record: one line of JSON."""
    data = _fields_of(record)
    if isinstance(record, Commit | Announce):
        data["boundary"] = record.boundary.to_json()
    if isinstance(record, Commit):
        data["totals"] = _fields_of(record.totals)
    return json.dumps({"kind": _NAMES[type(record)], **data}, separators=(",", ":")).encode()


def _fields_of(record: Record | Totals) -> dict[str, Any]:
    # `asdict` copies all that is inside as well, which takes 86 us of each batch instead of 1.
    return {name: getattr(record, name) for name in record.__slots__}


def decode(value: bytes) -> Record:
    """Returns the record that `encode` has encoded. Raises JournalDamaged."""
    try:
        data = json.loads(value)
        kind = _KINDS[data.pop("kind")]
        if "boundary" in data:
            data["boundary"] = Boundary.from_json(data["boundary"])
        if "ended" in data:
            data["ended"] = tuple(data["ended"])
        if "totals" in data:
            data["totals"] = Totals.from_json(data["totals"])
        return kind(**data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalDamaged(
            f"the journal has an unreadable journal record, {value[:200]!r}: {error}"
        ) from error
