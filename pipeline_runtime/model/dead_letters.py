"""Describes dead letters: where their rows lie, whether they were dropped or replayed, and how their rows
come back to the element. Pure.

A mark records that letters were dropped, put back or replayed. It is a record in the topic of the letters,
with a header. It comes after all letters that it names, so Kafka does not delete it before them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline_runtime.model.plain_data import object_in
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import RecordReading

MARK_HEADER = "fogline-mark"
FOR_HEADER = "fogline-for"
"""The header of a replayed row that names the element that takes it. Other readers of the stream skip it."""
ORDER_HEADER = "fogline-order"
"""The header of a replayed row that names the order by which it was replayed."""

REASON_MAX = 500
"""The most characters of a reason. Letters are grouped by reason."""
Did = Literal["drop", "put-back", "replay"]
_QUOTED = re.compile(
    r'(?P<column>columns? )?"[^"]*"'  # a text, or the name of a column
    r"|(?<=begins with ).*"
    r"|(?<!\w)[-+]?\d(?:[\w.:+-]*\w)?"  # a number or a time
)
"""Matches the parts of a reason that quote the row, and names of columns."""
_PLACE = re.compile(r"(?P<source>.+) partition (?P<partition>\d{1,9}) offset (?P<offset>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a letter's row in the stream that the element read."""

    source: str  # "element.port"
    partition: int
    offset: int

    @property
    def text(self) -> str:
        """Returns the place in the form in which a letter has it."""
        return f"{self.source} partition {self.partition} offset {self.offset}"


def place_of(letter: Mapping[str, Any]) -> Place | None:
    """Returns the place of the letter's row, or None if the letter does not name it. `letter`: field ->
    value."""
    told = letter.get("input")
    found = _PLACE.fullmatch(told) if isinstance(told, str) else None
    return None if found is None else Place(found["source"], int(found["partition"]), int(found["offset"]))


@dataclass(frozen=True, slots=True)
class Mark:
    """Records what an order did with letters: `did`. `offsets`: those of the letters, in rising order."""

    order: str
    did: Did
    offsets: tuple[int, ...]

    def encode(self) -> bytes:
        """Returns the mark as the value of a record."""
        said = {"order": self.order, "did": self.did, "offsets": spans_of(self.offsets)}
        return json.dumps(said, separators=(",", ":")).encode()

    @staticmethod
    def decode(value: bytes) -> Mark:
        """Returns the mark from which `encode` made this value."""
        said = json.loads(value)
        return Mark(said["order"], said["did"], tuple(offsets_in(said["offsets"])))


def spans_of(offsets: Iterable[int]) -> list[list[int]]:
    """Returns runs of consecutive offsets as [first, last]. The letters of one batch make one run, so the
    result is short. `offsets` rise."""
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and spans[-1][1] == offset - 1:
            spans[-1][1] = offset
        else:
            spans.append([offset, offset])
    return spans


def offsets_in(spans: Iterable[Iterable[int]]) -> Iterator[int]:
    """Yields the offsets of the runs that `spans_of` returned."""
    for first, last in spans:
        yield from range(first, last + 1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The letters that an order concerns. Their offsets are from `first` to before `until`.

    They are the letters at `offsets`, or the letters with a reason if `offsets` is None. A letter that comes
    later has an offset of `until` or more, so the order does not concern it.
    """

    first: int
    until: int
    offsets: tuple[int, ...] | None = None  # in rising order
    reason: str = ""  # as `reason_of` returns it
    text: str = ""  # with a reason: only letters that contain this text, in upper or lower case

    @staticmethod
    def named(offsets: Iterable[int]) -> Chosen:
        """Returns the choice of the letters at these offsets. There has to be at least one."""
        rising = tuple(sorted(set(offsets)))
        return Chosen(rising[0], rising[-1] + 1, rising)

    def has(self, offset: int, value: str) -> bool:
        """Returns whether the order concerns a letter. `value`: the letter's record."""
        if not self.first <= offset < self.until:
            return False
        if self.offsets is not None:
            at = bisect_left(self.offsets, offset)
            return at < len(self.offsets) and self.offsets[at] == offset
        return self.text.casefold() in value.casefold() and reason_of(value) == self.reason

    def next_from(self, offset: int) -> int | None:
        """Returns the least offset from `offset` on at which the next chosen letter may lie. Returns None if
        no more can come."""
        offset = max(offset, self.first)
        if self.offsets is not None:
            at = bisect_left(self.offsets, offset)
            return self.offsets[at] if at < len(self.offsets) else None
        return offset if offset < self.until else None


def reason_of(value: str) -> str:
    """Returns the letter's reason without the parts that quote the row. So letters with the same fault have
    the same reason, and are one group. Names of columns stay. `value`: the letter's record."""
    told = str(object_in(value).get("reason") or "No reason given")[:REASON_MAX]
    return _QUOTED.sub(_left_out, told)[:REASON_MAX]


def _left_out(found: re.Match[str]) -> str:
    if found["column"]:
        return found[0]
    return '"…"' if found[0].startswith('"') else "…"


class Fates:
    """Computes from marks which letters were dropped, put back or replayed. Marks are added in the order of
    their own offsets."""

    def __init__(self, marks: Iterable[Mark] = ()) -> None:
        self._last: dict[int, Mark] = {}  # offset of a dropped or replayed letter -> its last mark
        self._by: dict[str, set[int]] = {}  # order -> offsets of the letters in its marks
        for mark in marks:
            self.add(mark)

    def add(self, mark: Mark) -> None:
        self._by.setdefault(mark.order, set()).update(mark.offsets)
        if mark.did == "put-back":
            for offset in mark.offsets:
                self._last.pop(offset, None)
        else:
            self._last.update(dict.fromkeys(mark.offsets, mark))

    def is_open(self, offset: int) -> bool:
        """Returns whether the letter is neither dropped nor replayed."""
        return offset not in self._last

    def did(self, order: str, offset: int) -> bool:
        """Returns whether the order has already dealt with the letter."""
        return offset in self._by.get(order, ())

    def is_left(self, order: str, did: Did, offset: int, of: str | None = None) -> bool:
        """Returns whether the order still has to deal with the letter. A replayed letter is neither put back
        nor replayed again. `of`: the order whose dropped letters are put back."""
        if self.did(order, offset):
            return False
        if did != "put-back":
            return self.is_open(offset)
        last = self._last.get(offset)
        return last is not None and last.did == "drop" and last.order == of


@dataclass(frozen=True, slots=True)
class WayIn:
    """Says how rows of one stream come back to an element."""

    topic: str  # the topic of Fogline's own to which the rows are written
    schema: StreamSchema  # the schema of the rows in that topic
    consumer: str | None  # the only element that takes the rows, or None if all readers of the topic do
    read_from: str  # the topic in which the letters' rows lie
    reading: RecordReading | None = None  # how records become rows, if `read_from` is a user's topic


@dataclass(frozen=True, slots=True)
class WaysIn:
    """Says for each stream that an element reads how its rows come back to the element."""

    by_source: Mapping[str, WayIn | str]
    """Stream, as "element.port", -> how its rows come back, or a sentence that says why they cannot."""

    @property
    def each(self) -> list[WayIn]:
        """Returns the ways of the streams whose rows can come back."""
        return [way for way in self.by_source.values() if isinstance(way, WayIn)]

    def of(self, place: Place | None) -> WayIn | str:
        """Returns how a letter's row comes back, or a sentence that says why it cannot. `place`: that of the
        row, or None if the letter does not name it."""
        if place is not None:
            gone = f"The element no longer reads {place.source}, from which the row came."
            return self.by_source.get(place.source, gone)
        [first, *others] = self.by_source.values()
        return "The letter does not say from which input its row came." if others else first
