"""Times that name no year: the year begins again where December is followed by January."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_HALF_A_YEAR_US = 183 * 86_400_000_000


class Years:
    """Follows the rows through the file. All times that it is given are of the same year."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._years = 0

    def of(self, times: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
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
