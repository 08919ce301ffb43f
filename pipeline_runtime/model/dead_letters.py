"""Dead letters: where their rows lie, what has become of them since, and the way back in. Pure.

A mark says what was done about letters. It is a record of their own topic, with a header. So it lies behind
all letters that it is about, and goes when they have gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import RecordReading

MARK_HEADER = "fogline-mark"
FOR_HEADER = "fogline-for"
"""The header of a row that is replayed: the element that takes it. Others that read the stream pass it."""
ORDER_HEADER = "fogline-order"
"""The header of such a row that names the order by which it was replayed."""

Did = Literal["drop", "put-back", "replay"]
_PLACE = re.compile(r"(?P<source>.+) partition (?P<partition>\d{1,9}) offset (?P<offset>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a letter's row lies in the stream that its element read."""

    source: str  # "element.port"
    partition: int
    offset: int

    @property
    def text(self) -> str:
        """Returns the place as a letter has it."""
        return f"{self.source} partition {self.partition} offset {self.offset}"


def place_of(letter: Mapping[str, Any]) -> Place | None:
    """Returns where the row of a letter lies, if the letter says it."""
    told = letter.get("input")
    found = _PLACE.fullmatch(told) if isinstance(told, str) else None
    return None if found is None else Place(found["source"], int(found["partition"]), int(found["offset"]))


@dataclass(frozen=True, slots=True)
class Mark:
    """What an order did about letters. `offsets`: theirs, in rising order."""

    order: str
    did: Did
    offsets: tuple[int, ...]

    def encode(self) -> bytes:
        """Returns the mark as the value of a record."""
        said = {"order": self.order, "did": self.did, "offsets": _spans(self.offsets)}
        return json.dumps(said, separators=(",", ":")).encode()

    @staticmethod
    def decode(value: bytes) -> Mark:
        """Returns the mark that `encode` made a value of."""
        said = json.loads(value)
        offsets = (offset for first, last in said["offsets"] for offset in range(first, last + 1))
        return Mark(said["order"], said["did"], tuple(offsets))


def _spans(offsets: Iterable[int]) -> list[list[int]]:
    """Returns runs of offsets as [first, last]. Letters of one batch lie one behind the other."""
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and spans[-1][1] == offset - 1:
            spans[-1][1] = offset
        else:
            spans.append([offset, offset])
    return spans


def settled(marks: Iterable[Mark]) -> dict[int, Did]:
    """Returns what has become of letters, by offset: dropped or replayed. `marks`: in the order of their
    offsets."""
    found: dict[int, Did] = {}
    for mark in marks:
        for offset in mark.offsets:
            if mark.did == "put-back":
                found.pop(offset, None)
            else:
                found[offset] = mark.did
    return found


def concerned(did: Did, offsets: Sequence[int], marks: Sequence[Mark]) -> list[int]:
    """Returns the letters of an order that it still concerns. What was replayed once stays so: nothing puts
    it back and nothing replays it again."""
    so_far = settled(marks)
    if did == "put-back":
        return [offset for offset in offsets if so_far.get(offset) == "drop"]
    return [offset for offset in offsets if offset not in so_far]


@dataclass(frozen=True, slots=True)
class WayIn:
    """How rows come back to an element."""

    topic: str  # one of Fogline's own, to which they are written
    schema: StreamSchema  # of the rows there
    consumer: str | None  # the element that alone takes them, or None if all readers of the topic do
    read_from: str  # the topic in which the letters' rows lie
    reading: RecordReading | None = None  # of a user's topic: how its records become rows
