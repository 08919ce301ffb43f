"""Times that name no year, or times of day without a date: where another year or another day begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from webapp.imports.time_text import DAY_US, date_of, year_of

_HALF_A_YEAR_US = 183 * DAY_US
_CLOCK_CHANGE_US = 2 * 3_600_000_000  # a fall of less may be a changed clock, or a row out of its order

Times = NDArray[np.int64]


class Years:
    """Follows the rows through the file. All times that it is given are of the same year.

    The year begins again where December is followed by January.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._years = 0

    def of(self, times: Times, known: NDArray[np.bool_]) -> Times:
        """Returns the times, in microseconds, of which those that are known have their years."""
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
    """Follows the rows through the file. All times that it is given are of the same day.

    A day begins where the time falls by more than two hours; with the newest row first, where it rises so.
    """

    def __init__(self, newest_first: bool) -> None:
        self._sign = -1 if newest_first else 1
        self._last: int | None = None
        self._days = 0

    def of(self, times: Times, known: NDArray[np.bool_]) -> Times:
        """Returns the times, in microseconds, of which those that are known have their days."""
        some = times[known]
        if not len(some):
            return times
        steps = self._sign * np.diff(some, prepend=some[0] if self._last is None else self._last)
        days = self._days + np.cumsum(steps < -_CLOCK_CHANGE_US)
        self._last, self._days = int(some[-1]), int(days[-1])
        times = times.copy()
        times[known] = some + self._sign * DAY_US * days
        return times


def turns_of(time_format: str, newest_first: bool) -> Years | Days | None:
    """Returns what follows the rows whose times have this format, if they lack their year or their date."""
    if year_of(time_format) is not None:
        return Years()
    return Days(newest_first) if date_of(time_format) is not None else None
