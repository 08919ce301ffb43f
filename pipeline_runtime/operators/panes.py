"""Windows of time, put together from panes that they share.

A pane is a part of time that lies as a whole in each window or outside: windows of 60 s that begin every 10 s
have panes of 10 s. So each row is counted once, in its pane, however many windows it is in. After Li et al.,
"No Pane, No Gain: Efficient Evaluation of Sliding-Window Aggregates over Data Streams" (SIGMOD Record 2005).

Panes are numbered. Pane n ends where time n begins, and times are numbered from the first window's begin. A
window that begins at time s has the panes s + 1 to s + `size`, in panes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from pipeline_runtime.operators.sliding import Whole

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


def windows(keys: Whole, panes: Whole, starts: range, size: int) -> tuple[Whole, Whole, Whole]:
    """Finds the windows that have rows, of those that begin at `starts`.

    There is an entry for each pane that has rows and each key, ordered by `keys` and then by `panes`. Returns
    for each window of a key where it begins, the place of its first entry, and how many entries it has.
    """
    slide = starts.step
    last = (panes - 1) // slide * slide  # where the last window begins that an entry is in
    low = np.maximum(-((size - panes) // slide) * slide, starts.start)
    # An entry is the first one of those windows that the entry before it is not in.
    low[1:] = np.where(keys[1:] == keys[:-1], np.maximum(low[1:], last[:-1] + slide), low[1:])
    high = np.minimum(last, starts[-1] if starts else starts.start - slide)
    counts = np.maximum((high - low) // slide + 1, 0)
    firsts = np.repeat(np.arange(len(panes)), counts)
    begins = low[firsts] + slide * (np.arange(len(firsts)) - (np.cumsum(counts) - counts)[firsts])
    different, numbers = np.unique(panes, return_inverse=True)
    behind = np.searchsorted(different, begins + size, side="right")
    apart = len(different) + 1
    ends = np.searchsorted(keys * apart + numbers, keys[firsts] * apart + behind)
    return begins, firsts, ends - firsts
