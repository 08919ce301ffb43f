"""Event time in whole microseconds, as the states of batch processors keep it."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FIRST_US, LAST_US = -(2**62), 2**62
"""Before and behind all times, with room for a window."""
DIGITS = 19  # of the difference of the two


def in_us(seconds: float) -> int:
    """A parameter's, which counts to the millisecond."""
    return round(seconds * 1000) * 1000


def times_us(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """Of a column of timestamps without nulls."""
    found: NDArray[np.int64] = times.cast(pa.int64()).to_numpy()
    return found


def sortable(time_us: int) -> str:
    """DIGITS characters, whose order is that of the times."""
    return f"{time_us - FIRST_US:0{DIGITS}d}"


def of_sortable(text: str) -> int:
    return int(text) + FIRST_US


def utc(time_us: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=time_us)).isoformat(" ")  # noqa: DTZ001


def newest_before(
    times: NDArray[np.int64], partitions: NDArray[np.int32], newest_us: int
) -> NDArray[np.int64]:
    """The newest event time before each row: of the batches before, and of its own partition. Rows of several
    partitions have come at the same time, as far as anybody knows."""
    found = np.empty_like(times)
    for partition in np.unique(partitions):
        mine = partitions == partition
        found[mine] = np.maximum.accumulate(np.concatenate(([newest_us], times[mine][:-1])))
    return found
