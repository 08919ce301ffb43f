"""Windows of time, put together from panes that they share.

A pane is a part of time that lies as a whole in each window or outside: windows of 60 s that begin every 10 s
have panes of 10 s. So each row is counted once, in its pane, however many windows it is in. After Li et al.,
"No Pane, No Gain: Efficient Evaluation of Sliding-Window Aggregates over Data Streams" (SIGMOD Record 2005).

Panes are numbered. Pane n ends where time n begins, and times are numbered from the first window's begin. A
window that begins at time s has the panes s + 1 to s + `size`, in panes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from pipeline_runtime.operators.accumulators import Kept

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of a wall clock
# The years that Python's calendar has, with room for a zone's offset. Outside, zones are taken for UTC.
_FIRST_US, _LAST_US = (
    (datetime(year, 1, 1) - _EPOCH) // timedelta(microseconds=1)  # noqa: DTZ001
    for year in (2, 9998)
)

Times = NDArray[np.int64]


class Calendar(Protocol):
    """Where panes begin and end, in us."""

    def pane_of(self, times_us: Times) -> Times:
        """Returns the number of the pane in which each time lies."""
        ...

    def end_us(self, pane: int) -> int:
        """Returns when the pane ends and the next one begins."""
        ...


class EvenCalendar:
    """Panes of one length."""

    def __init__(self, pane_us: int, offset_us: int) -> None:
        self._pane_us = pane_us
        self._offset_us = offset_us

    def pane_of(self, times_us: Times) -> Times:
        found: Times = (times_us - self._offset_us) // self._pane_us + 1
        return found

    def end_us(self, pane: int) -> int:
        return self._offset_us + pane * self._pane_us


class ZonedCalendar:
    """Panes that begin when a wall clock in a zone shows a time: whole hours of a day, or whole days.

    When the clocks are put back, an hour comes twice and belongs to the pane in which it begins, which is an
    hour longer. When they are put forward, a pane is an hour shorter.
    """

    def __init__(self, pane_us: int, offset_us: int, zone: str) -> None:
        self._pane_us = pane_us
        self._offset_us = offset_us
        self._zone = zone

    def pane_of(self, times_us: Times) -> Times:
        hours, places = np.unique(times_us // HOUR_US, return_inverse=True)
        ahead_us = np.array([_ahead_us(self._zone, hour) for hour in hours.tolist()], np.int64)
        found: Times = (times_us + ahead_us[places] - self._offset_us) // self._pane_us + 1
        while True:  # the clocks may have been changed in the middle of the hour
            panes, places = np.unique(found, return_inverse=True)
            ends = np.array([self.end_us(pane) for pane in panes.tolist()], np.int64)[places]
            begins = np.array([self.end_us(pane - 1) for pane in panes.tolist()], np.int64)[places]
            wrong = (times_us >= ends).astype(np.int64) - (times_us < begins)
            if not wrong.any():
                return found
            found = found + wrong

    def end_us(self, pane: int) -> int:
        return _first_us(self._zone, self._offset_us + pane * self._pane_us)


@lru_cache(maxsize=100_000)
def _ahead_us(zone: str, hour: int) -> int:
    """Returns by how much the zone's clocks are ahead of UTC when this hour begins, counted from 1970."""
    time_us = hour * HOUR_US
    if not _FIRST_US < time_us < _LAST_US:
        return 0
    ahead = datetime.fromtimestamp(hour * 3600, ZoneInfo(zone)).utcoffset()
    assert ahead is not None
    return ahead // timedelta(microseconds=1)


@lru_cache(maxsize=100_000)
def _first_us(zone: str, wall_us: int) -> int:
    """Returns the first moment at which the zone's clocks show this time, or a later one because it is left
    out."""
    if not _FIRST_US < wall_us < _LAST_US:
        return wall_us
    info, wall = ZoneInfo(zone), _EPOCH + timedelta(microseconds=wall_us)
    first = wall.replace(tzinfo=info, fold=0).astimezone(UTC)
    if first.astimezone(info).replace(tzinfo=None) != wall:
        # The clocks are put forward over this time: at a moment between the two readings of it.
        before, first = wall.replace(tzinfo=info, fold=1).astimezone(UTC), first
        while first - before > timedelta(seconds=1):
            middle = before + (first - before) // 2
            middle = middle.replace(microsecond=0)
            if middle.astimezone(info).replace(tzinfo=None) < wall:
                before = middle
            else:
                first = middle
    return (first.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)


def first_start(above: int, slide: int) -> int:
    """Returns the first time above this one at which a window begins. `slide` is in panes."""
    return (above // slide + 1) * slide


def windows(
    places: Sequence[int],
    kept: Sequence[Kept],
    starts: range,
    size: int,
    merged: Callable[[Kept, Kept], Kept],
) -> Iterator[tuple[int, Kept]]:
    """Yields (start, what is kept for its rows) for each window that has rows, of those that begin at
    `starts`.

    `places` are the panes that have rows, in rising order, and `kept` is what is kept for each of them. Each
    pane is merged about three times, however many windows there are: a window is the end of one block of
    `size` panes and the beginning of the next. After van Herk, "A fast algorithm for local minimum and
    maximum filters on rectangular and octagonal kernels" (Pattern Recognition Letters, 1992). Where blocks
    begin does not depend on the windows that are asked for, and so neither do the last digits of a sum.
    """
    edge: int | None = None
    ends: list[Kept] = []  # of the panes up to `edge`, from each of them on
    begins: list[Kept] = []  # of the panes behind `edge`, up to each of them
    first = middle = 0  # the places of the first of `ends` and of `begins`
    start = starts.start
    while start < starts.stop:
        low, high = bisect_right(places, start), bisect_right(places, start + size)
        if low == len(places):
            return
        if low == high:  # nothing until the next pane
            start = max(start + starts.step, first_start(places[low] - size - 1, starts.step))
            continue
        if edge != (start + size) // size * size:
            edge = (start + size) // size * size
            first, middle = low, bisect_right(places, edge)
            ends, begins = _from_the_end(kept[first:middle], merged), []
        while middle + len(begins) < high:
            new = kept[middle + len(begins)]
            begins.append(merged(begins[-1], new) if begins else new)
        if low >= middle:
            # The window has none of the panes before the edge, and the first behind it is in it.
            yield start, begins[high - middle - 1]
        elif high <= middle:
            yield start, ends[low - first]
        else:
            yield start, merged(ends[low - first], begins[high - middle - 1])
        start += starts.step


def _from_the_end(kept: Sequence[Kept], merged: Callable[[Kept, Kept], Kept]) -> list[Kept]:
    found: list[Kept] = []
    for each in reversed(kept):
        found.append(merged(each, found[-1]) if found else each)
    found.reverse()
    return found
