"""Adds the year to times without a year, and the day to times of day without a date."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from webapp.imports.time_text import ABOVE, DAY_US, date_of, year_of

_HALF_A_YEAR_US = 183 * DAY_US
_CLOCK_CHANGE_US = 2 * 3_600_000_000  # a smaller step back may be a clock change, or a row out of order

_YEAR_1_US = -719_162 * DAY_US
_YEAR_2_US = _YEAR_1_US + 365 * DAY_US

Times = NDArray[np.int64]


class Years:
    """Follows the rows through the file, and adds the year. All given times are of the same year.

    A new year begins where January follows December.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._years = 0

    def of(self, times: Times, known: NDArray[np.bool_]) -> Times:
        """Returns the times in microseconds. The known ones have their year."""
        some = times[known]
        if not len(some):
            return times
        steps = np.diff(some, prepend=some[0] if self._last is None else self._last)
        turns = (steps < -_HALF_A_YEAR_US).astype(np.int64) - (steps > _HALF_A_YEAR_US)
        years = self._years + np.cumsum(turns)
        self._last, self._years = int(some[-1]), int(years[-1])
        if not years.any():
            return times
        moments = some.astype("datetime64[us]")
        months = moments.astype("datetime64[M]")
        moved = (months + 12 * years).astype("datetime64[us]") + (moments - months)
        times = times.copy()
        times[known] = moved.astype(np.int64)
        return times


class Days:
    """Follows the rows through the file, and adds the day. All given times are of the same day.

    A new day begins where the time falls by more than two hours. If the newest row comes first, it begins
    where the time rises by more than two hours.
    """

    def __init__(self, newest_first: bool) -> None:
        self._sign = -1 if newest_first else 1
        self._last: int | None = None
        self._days = 0

    def of(self, times: Times, known: NDArray[np.bool_]) -> Times:
        """Returns the times in microseconds. The known ones have their day."""
        some = times[known]
        if not len(some):
            return times
        steps = self._sign * np.diff(some, prepend=some[0] if self._last is None else self._last)
        days = self._days + np.cumsum(steps < -_CLOCK_CHANGE_US)
        self._last, self._days = int(some[-1]), int(days[-1])
        times = times.copy()
        times[known] = some + self._sign * DAY_US * days
        return times


class Above:
    """Follows the rows through the file, and adds the date of a row above. A time in the year 1 has no date
    of its own: its date is that of the last row above with a date. A new day begins where the time falls by
    more than two hours."""

    def __init__(self) -> None:
        self._date: int | None = None
        self._last = self._days = 0

    def of(self, times: Times, known: NDArray[np.bool_]) -> Times:
        """Returns the times in microseconds, with their dates. Rows above the first date become unknown."""
        some = times[known]
        bare = some < _YEAR_2_US
        if not bare.any():
            self._keep(some)
            return times
        clock = np.where(bare, some - _YEAR_1_US, some % DAY_US)
        steps = np.diff(clock, prepend=clock[0] if self._date is None else self._last)
        days = np.cumsum((steps < -_CLOCK_CHANGE_US) & bare)
        place = np.maximum.accumulate(np.where(bare, -1, np.arange(len(some))))
        dates, before = some[place] - some[place] % DAY_US, days[place]
        first = place < 0
        dates[first], before[first] = self._date or 0, -self._days
        found = np.where(bare, dates + clock + DAY_US * (days - before), some)
        times = times.copy()
        times[known] = found
        if self._date is None and first.any():
            known[np.flatnonzero(known)[first]] = False
        if not first[-1]:
            self._date = int(dates[-1])
        self._last, self._days = int(clock[-1]), int(days[-1] - before[-1])
        return times

    def _keep(self, some: Times) -> None:
        if len(some):
            self._last, self._days = int(some[-1] % DAY_US), 0
            self._date = int(some[-1]) - self._last


def turns_of(time_format: str, newest_first: bool) -> Years | Days | Above | None:
    """Returns the object that adds the year or the date to times of this format, or None if they lack
    neither."""
    if time_format.startswith(ABOVE):
        return Above()
    if year_of(time_format) is not None:
        return Years()
    return Days(newest_first) if date_of(time_format) is not None else None
