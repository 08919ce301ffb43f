"""Turns local times into UTC. In a repeated hour, the order of the rows decides between the two meanings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

Micros = NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = (1900, 2200)  # clock changes are looked up in these years
_YEAR_US = 31_556_952_000_000


class Zone:
    """Turns the local times of rows, given in the rows' order, into UTC."""

    def __init__(self, name: str) -> None:
        self._zone = ZoneInfo(name)
        self._years: dict[int, list[tuple[int, int, int]]] = {}
        # Local time and clock change of the last row in a repeated hour.
        self._last: tuple[int, int] | None = None
        self._second = False

    def to_utc(self, local: Micros) -> Micros:
        """Returns the times in UTC. A time in a skipped hour is read as if the clock had not been changed
        yet.

        The second pass of a repeated hour begins where the local time falls back for the first time.
        """
        if not len(local):
            return local
        changes = self._changes(int(local.min()), int(local.max()))
        at, before, after = changes[:, 0], changes[:, 1], changes[:, 2]
        if not len(changes):
            return np.asarray(local - self._offset(int(local[0])))
        sure = np.searchsorted(at + np.maximum(before, after), local, side="right")
        begun = np.searchsorted(at + np.minimum(before, after), local, side="right")
        offsets = np.append(before, after[-1])[sure]
        within = np.flatnonzero(begun > sure)
        twice = within[(before > after)[sure[within]]]
        if len(twice):
            second = self._second_pass(local, twice, sure, (before - after))
            offsets[second] = after[sure[second]]
        if not len(twice) or twice[-1] != len(local) - 1:
            self._last = None
        return np.asarray(local - offsets)

    def _second_pass(self, local: Micros, twice: Micros, change: Micros, shift: Micros) -> Micros:
        """Returns the rows of `twice` that are in the second pass of their hour."""
        found: list[Micros] = []
        runs = np.split(twice, np.flatnonzero((np.diff(twice) > 1) | (np.diff(change[twice]) != 0)) + 1)
        for run in runs:
            at, first = int(change[run[0]]), int(run[0])
            continued = first == 0 and self._last is not None
            before = self._last[0] if continued and self._last else int(local[first])
            falls = np.diff(local[run], prepend=before) <= -(int(shift[at]) // 4)
            started = self._second if continued else False
            if not started and falls.any():
                begin = int(np.argmax(falls))
            else:
                begin = 0 if started else self._equal_halves(local, run)
            found.append(run[begin:])
            self._second = begin < len(run)
            self._last = (int(local[run[-1]]), at)
        return np.concatenate(found)

    @staticmethod
    def _equal_halves(local: Micros, run: Micros) -> int:
        """Returns where the second half begins, if all rows have the same time and are twice as many as the
        rows of the time before. Otherwise returns the number of rows."""
        first, count = int(run[0]), len(run)
        if first == 0 or count % 2 or (local[run] != local[first]).any():
            return count
        previous = local[max(0, first - count) : first]
        same = int((previous == previous[-1]).sum())
        return count // 2 if same == count // 2 else count

    def _changes(self, first_us: int, last_us: int) -> Micros:
        """Returns (UTC, offset before, offset after) of each change of the clock around these times."""
        first = max(_YEARS[0], 1970 + first_us // _YEAR_US - 1)
        last = min(_YEARS[1], 1970 + last_us // _YEAR_US + 1)
        found = [change for year in range(first, last + 1) for change in self._of_year(year)]
        return np.array(found, np.int64).reshape(-1, 3)

    def _of_year(self, year: int) -> list[tuple[int, int, int]]:
        if year not in self._years:
            days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(366)]
            days = [day for day in days if day.year == year] + [datetime(year + 1, 1, 1, tzinfo=UTC)]
            self._years[year] = [
                self._found(one, other) for one, other in pairwise(days) if self._of(one) != self._of(other)
            ]
        return self._years[year]

    def _found(self, before: datetime, after: datetime) -> tuple[int, int, int]:
        """Returns the change between two moments, to the second."""
        offsets = self._of(before), self._of(after)
        while after - before > timedelta(seconds=1):
            middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
            if self._of(middle) == offsets[0]:
                before = middle
            else:
                after = middle
        return ((after - _EPOCH) // timedelta(microseconds=1), *offsets)

    def _of(self, moment: datetime) -> int:
        offset = moment.astimezone(self._zone).utcoffset() or timedelta()
        return offset // timedelta(microseconds=1)

    def _offset(self, at_us: int) -> int:
        try:
            return self._of(_EPOCH + timedelta(microseconds=at_us))
        except OverflowError:
            return 0
