"""Rows of one key that wait for something, sorted by event time.

They lie in slots of event time, and each slot is a state of its own. So a batch reads and writes only the
slots that it touches, however many rows wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = int | list[Any]
"""A row's place in the batch, or [event time in ms, *values] of a row of an earlier batch."""
Load = Callable[[Sequence[int]], Iterable[list[Row]]]
"""Returns the rows of slots that were kept, by the times at which the slots begin, in ms."""


@dataclass(slots=True)
class _Slot:
    count: int = 0
    # Rows before it are gone. They are taken out when somebody asks for them, since at each row some others
    # are too old.
    from_ms: int | None = None
    times: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    is_loaded: bool = True
    is_changed: bool = False

    def settle(self) -> int:
        """Takes out the rows that are gone. Returns how many."""
        gone = 0 if self.from_ms is None else bisect_left(self.times, self.from_ms)
        self.from_ms = None
        if gone:
            self.remove(0, gone)
        return gone

    def remove(self, first: int, end: int) -> None:
        del self.times[first:end], self.rows[first:end]
        self.count, self.is_changed = len(self.times), True


class Waiting:
    def __init__(self, width_ms: int, slots: Iterable[Sequence[Any]], load: Load) -> None:
        """`width_ms` is the width of a slot, and `slots` is what `kept` has returned."""
        self.width_ms = width_ms
        self._load = load
        # By the time at which it begins.
        self._slots = {begin: _Slot(count, from_ms, is_loaded=False) for begin, count, from_ms in slots}
        self._begins = sorted(self._slots)
        self._kept = frozenset(self._slots)
        self.count = sum(slot.count for slot in self._slots.values())
        """The number of rows. It is larger while rows that are gone have not been taken out."""

    def insert(self, at_ms: int, place: int) -> None:
        """Adds a row of this batch, behind those of the same time."""
        begin = self._begin(at_ms)
        if begin not in self._slots:
            self._slots[begin] = _Slot()
            insort(self._begins, begin)
        slot = self._slots[begin]
        if not slot.is_loaded:
            self._read([begin])
        if slot.from_ms is not None and at_ms < slot.from_ms:
            self.count -= slot.settle()
        behind = bisect_right(slot.times, at_ms)
        slot.times.insert(behind, at_ms)
        slot.rows.insert(behind, place)
        slot.count, slot.is_changed = len(slot.times), True
        self.count += 1

    def drop_before(self, time_ms: int) -> None:
        """Drops the rows before a time."""
        while self._begins and self._begins[0] + self.width_ms <= time_ms:
            self.count -= self._slots.pop(self._begins.pop(0)).count
        if self._begins and self._begins[0] < time_ms:
            slot = self._slots[self._begins[0]]
            if slot.from_ms is None or slot.from_ms < time_ms:
                slot.from_ms = time_ms

    def take(self, from_ms: int, until_ms: int) -> list[tuple[int, Row]]:
        """Removes and returns the rows from one time to another, both included, each behind its time."""
        found: list[tuple[int, Row]] = []
        for begin, slot in self._between(from_ms, until_ms):
            first, end = bisect_left(slot.times, from_ms), bisect_right(slot.times, until_ms)
            if first < end:
                found += zip(slot.times[first:end], slot.rows[first:end], strict=True)
                slot.remove(first, end)
                self.count -= end - first
            if not slot.count:
                del self._slots[begin]
                self._begins.remove(begin)
        return found

    def has_room(self, most: int, before_ms: int | None, after_ms: int) -> bool:
        """Returns whether less than `most` rows wait, once those before `before_ms` are dropped. If not, it
        drops those after `after_ms`."""
        if self.count < most:
            return True
        slots = self._between(self._begins[0], self._begins[-1])
        oldest_ms = next((slot.times[0] for _, slot in slots if slot.times), None)
        if self.count < most or (before_ms is not None and oldest_ms is not None and oldest_ms < before_ms):
            return True
        return bool(self.take(after_ms + 1, self._begins[-1] + self.width_ms))

    @property
    def newest_ms(self) -> int | None:
        """The time at which the newest slot begins."""
        return self._begins[-1] if self._begins else None

    def give(self, begin_ms: int, rows: Sequence[Any]) -> None:
        """Takes the rows of a slot that was kept."""
        slot = self._slots[begin_ms]
        slot.times, slot.rows, slot.is_loaded = [row[0] for row in rows], [*rows], True

    def kept(self) -> list[list[Any]]:
        """Returns begin, count and `from_ms` of each slot."""
        return [[begin, slot.count, slot.from_ms] for begin, slot in sorted(self._slots.items())]

    def changed(self) -> dict[int, list[tuple[int, Row]] | None]:
        """Returns the rows of the slots that have changed, each behind its time, or None for a slot that is
        gone."""
        found: dict[int, list[tuple[int, Row]] | None] = dict.fromkeys(self._kept - self._slots.keys())
        for begin, slot in self._slots.items():
            if slot.is_changed:
                found[begin] = list(zip(slot.times, slot.rows, strict=True))
        return found

    def _begin(self, at_ms: int) -> int:
        return at_ms // self.width_ms * self.width_ms

    def _between(self, from_ms: int, until_ms: int) -> list[tuple[int, _Slot]]:
        """Returns the slots that may have rows from one time to another. They are read, and without rows that
        are gone."""
        first = bisect_left(self._begins, self._begin(from_ms))
        begins = self._begins[first : bisect_right(self._begins, until_ms)]
        self._read(begins)
        slots = [(begin, self._slots[begin]) for begin in begins]
        self.count -= sum(slot.settle() for _, slot in slots)
        return slots

    def _read(self, begins: Iterable[int]) -> None:
        wanted = [begin for begin in begins if not self._slots[begin].is_loaded]
        for begin, rows in zip(wanted, self._load(wanted) if wanted else (), strict=True):
            self.give(begin, rows)
