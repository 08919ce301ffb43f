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
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pipeline_runtime.model.ids import Epoch, Seq

SPEC_BYTES_MAX = 100_000
"""Of a definition in a CLAIM: a slow line has to bring it to the broker within the time of a transaction."""

Ends = dict[str, Any]
"""Where each input stands: "<topic>-<partition>" -> offset, a source element's id -> its position."""
END_STAGE = "#end"
"""Beside such positions in a boundary: how far the ending of a finished group has come."""
ENDED = "#ended"
"""Beside such positions of a group that others go on from: a list of the inputs whose end it has read."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """One batch's end: what Spark keeps as the source's offset."""

    seq: Seq
    ends: Ends
    batch_time_ms: int

    def to_json(self) -> dict[str, Any]:
        return {"seq": self.seq, "ends": self.ends, "batch_time": self.batch_time_ms}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Boundary:
        return Boundary(Seq(data["seq"]), data["ends"], data["batch_time"])


@dataclass(frozen=True, slots=True)
class Commit:
    epoch: Epoch
    boundary: Boundary
    rows_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    marks: dict[str, Any] = field(default_factory=dict)  # sink element -> its SinkWriter's mark
    ended: tuple[str, ...] = ()  # inputs whose end this batch has read
    node: str = ""
    definition: str = ""
    """The GroupSpec.version that processed it: after an upgrade another one does. Empty: not said."""

    @property
    def seq(self) -> Seq:
        return self.boundary.seq

    def is_of(self, version: str) -> bool:
        """Whether this definition may follow it."""
        return self.definition in ("", version)


@dataclass(frozen=True, slots=True)
class Claim:
    epoch: Epoch
    order: str
    node: str
    start: Ends = field(default_factory=dict)
    """Where a group's first batch begins; the first claim of a journal decides it for all."""
    rewind: Seq | None = None
    """The seq from which it goes on: what was committed behind it is void, and is emitted again."""
    definition: str = ""
    """The GroupSpec.version that it goes on with."""
    spec: dict[str, Any] | None = None
    """That definition itself, as JSON: who starts from a checkpoint of before has it from nowhere else.
    None: not said, by an older version, or because it is larger than SPEC_BYTES_MAX."""
    anew: bool = False
    """Its state begins empty here: that of the former definition is of no use to this one. Its inputs and its
    sinks' files go on where they stand."""
    moves: Ends | None = None
    """Where its first batch begins, if it reads other inputs than the definition before it. None: where the
    last batch ended."""
    ended: tuple[str, ...] = ()
    """Inputs whose end was read by the group that it goes on from: it will not find that any more."""


@dataclass(frozen=True, slots=True)
class Arm:
    epoch: Epoch  # the one that it would own
    token: str  # new for each initialisation: what was armed before cannot be released to
    order: str  # the handover's
    node: str = ""
    round_trip_ms: float = 0.0  # of a request to the broker; 0: not said
    listens: bool = False  # on GroupSpec.released, too


@dataclass(frozen=True, slots=True)
class Announce:
    """So that a successor can run the batch at the same time. Its COMMIT may never follow."""

    epoch: Epoch
    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Release:
    epoch: Epoch  # the one that ends
    seq: Seq  # its last
    token: str  # of the ARMED that it releases to
    order: str
    node: str = ""  # the successor's


@dataclass(frozen=True, slots=True)
class Retire:
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
    data = asdict(record)
    if isinstance(record, Commit | Announce):
        data["boundary"] = record.boundary.to_json()
    return json.dumps({"kind": _NAMES[type(record)], **data}, separators=(",", ":")).encode()


def decode(value: bytes) -> Record:
    try:
        data = json.loads(value)
        kind = _KINDS[data.pop("kind")]
        if "boundary" in data:
            data["boundary"] = Boundary.from_json(data["boundary"])
        if "ended" in data:
            data["ended"] = tuple(data["ended"])
        known = {item.name for item in fields(kind)}
        return kind(**{name: value for name, value in data.items() if name in known})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalDamaged(f"unreadable journal record {value[:200]!r}: {error}") from error
