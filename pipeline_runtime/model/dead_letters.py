"""Dead letters: where their rows lie, what has become of them since, and the way back in. Pure.

A mark says what was done about letters. It is a record of their own topic, with a header. So it lies behind
all letters that it is about, and goes when they have gone.
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
"""The header of a row that is replayed: the element that takes it. Others that read the stream pass it."""
ORDER_HEADER = "fogline-order"
"""The header of such a row that names the order by which it was replayed."""

REASON_MAX = 500
"""Characters of a reason by which letters are grouped."""
Did = Literal["drop", "put-back", "replay"]
_QUOTED = re.compile(
    r'(?P<column>columns? )?"[^"]*"'  # a text, or the name of a column
    r"|(?<=begins with ).*"
    r"|(?<!\w)[-+]?\d(?:[\w.:+-]*\w)?"  # a number or a time
)
"""What a reason quotes of its row."""
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
        said = {"order": self.order, "did": self.did, "offsets": spans_of(self.offsets)}
        return json.dumps(said, separators=(",", ":")).encode()

    @staticmethod
    def decode(value: bytes) -> Mark:
        """Returns the mark that `encode` made a value of."""
        said = json.loads(value)
        return Mark(said["order"], said["did"], tuple(offsets_in(said["offsets"])))


def spans_of(offsets: Iterable[int]) -> list[list[int]]:
    """Returns runs of rising offsets as [first, last]. Letters of one batch lie one behind the other."""
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and spans[-1][1] == offset - 1:
            spans[-1][1] = offset
        else:
            spans.append([offset, offset])
    return spans


def offsets_in(spans: Iterable[Iterable[int]]) -> Iterator[int]:
    """Yields the offsets that `spans_of` made runs of."""
    for first, last in spans:
        yield from range(first, last + 1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The letters that an order is about: those from `first` to before `until` that are named, or else those
    of a reason. A letter that comes later lies at `until` or behind it."""

    first: int
    until: int
    offsets: tuple[int, ...] | None = None  # these, in rising order; those of the reason if it is None
    reason: str = ""  # as `reason_of` has it
    text: str = ""  # only letters in which it stands, in whatever case

    @staticmethod
    def named(offsets: Iterable[int]) -> Chosen:
        """Returns the choice of these letters, of at least one."""
        rising = tuple(sorted(set(offsets)))
        return Chosen(rising[0], rising[-1] + 1, rising)

    def has(self, offset: int, value: str) -> bool:
        """Returns whether a letter is one of them."""
        if not self.first <= offset < self.until:
            return False
        if self.offsets is not None:
            at = bisect_left(self.offsets, offset)
            return at < len(self.offsets) and self.offsets[at] == offset
        return self.text.casefold() in value.casefold() and reason_of(value) == self.reason

    def next_from(self, offset: int) -> int | None:
        """Returns from where on the next of them may lie, at `offset` or behind it. Returns None if
        there are no more."""
        offset = max(offset, self.first)
        if self.offsets is not None:
            at = bisect_left(self.offsets, offset)
            return self.offsets[at] if at < len(self.offsets) else None
        return offset if offset < self.until else None


def reason_of(value: str) -> str:
    """Returns why a row became a letter, as its group is called: without what is quoted of the row, so that
    rows with the same fault are one group. Names of columns stay. `value`: the letter's record."""
    told = str(object_in(value).get("reason") or "No reason given")[:REASON_MAX]
    return _QUOTED.sub(_left_out, told)[:REASON_MAX]


def _left_out(found: re.Match[str]) -> str:
    if found["column"]:
        return found[0]
    return '"…"' if found[0].startswith('"') else "…"


class Fates:
    """What has become of letters, as marks say it. They are added in the order of their offsets."""

    def __init__(self, marks: Iterable[Mark] = ()) -> None:
        self._last: dict[int, Mark] = {}  # of letters that were dropped or replayed
        self._by: dict[str, set[int]] = {}  # for which letters an order did something
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
        """Returns whether nobody has dropped or replayed the letter."""
        return offset not in self._last

    def did(self, order: str, offset: int) -> bool:
        """Returns whether the order has done already what it does about the letter."""
        return offset in self._by.get(order, ())

    def is_left(self, order: str, did: Did, offset: int, of: str | None = None) -> bool:
        """Returns whether the order is still to do something about the letter. What was replayed once stays
        so: nothing puts it back, and nothing replays it again. `of`: the order whose letters are put back."""
        if self.did(order, offset):
            return False
        if did != "put-back":
            return self.is_open(offset)
        last = self._last.get(offset)
        return last is not None and last.did == "drop" and last.order == of


@dataclass(frozen=True, slots=True)
class WayIn:
    """How rows come back to an element."""

    topic: str  # one of Fogline's own, to which they are written
    schema: StreamSchema  # of the rows there
    consumer: str | None  # the element that alone takes them, or None if all readers of the topic do
    read_from: str  # the topic in which the letters' rows lie
    reading: RecordReading | None = None  # of a user's topic: how its records become rows


@dataclass(frozen=True, slots=True)
class WaysIn:
    """How rows come back to an element."""

    by_source: Mapping[str, WayIn | str]
    """By the stream that the element reads, "element.port": how its rows come back, or why they cannot, as a
    sentence."""

    @property
    def each(self) -> list[WayIn]:
        """Returns the ways that there are."""
        return [way for way in self.by_source.values() if isinstance(way, WayIn)]

    def of(self, place: Place | None) -> WayIn | str:
        """Returns how the row of a letter comes back, or why it cannot. `place`: what the letter says."""
        if place is not None:
            gone = f"The element no longer reads {place.source}, from which the row came."
            return self.by_source.get(place.source, gone)
        [first, *others] = self.by_source.values()
        return "The letter does not say from which input its row came." if others else first
