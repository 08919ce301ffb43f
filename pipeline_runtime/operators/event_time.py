"""Event time in whole microseconds, as the states of batch processors hold it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.operators.tables import rejects

FIRST_US, LAST_US = -(2**62), 2**62
"""Before and after all times, with room for a window."""
DIGITS = 19  # the digits of their difference


def in_us(seconds: float) -> int:
    """Converts a parameter, whose unit is exact to the millisecond."""
    return round(seconds * 1000) * 1000


def times_us(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """Converts a column of timestamps without nulls."""
    found: NDArray[np.int64] = times.cast(pa.int64()).to_numpy()
    return found


def sortable(time_us: int) -> str:
    """Returns DIGITS characters. Their order is the order of the times."""
    return f"{time_us - FIRST_US:0{DIGITS}d}"


def of_sortable(text: str) -> int:
    return int(text) + FIRST_US


def utc(time_us: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=time_us)).isoformat(" ")  # noqa: DTZ001


def untimed(rows: pa.Table, names: Sequence[str]) -> pa.Table | None:
    """Returns dead letters for the rows without an event time, or None if there are none."""
    if not rows["_time"].null_count:
        return None
    found = rows.filter(pc.is_null(rows["_time"]))
    return rejects(found, names, ["the row has no event time"] * found.num_rows)


def too_late(
    rows: pa.Table, names: Sequence[str], newest: NDArray[np.int64], delay_us: int, late: NDArray[np.bool_]
) -> pa.Table | None:
    """Returns dead letters for the rows that are `late`, or None if there are none. `newest` comes from
    newest_before."""
    if not late.any():
        return None
    found = rows.filter(pa.array(late))
    behind_us = (newest[late] - times_us(found["_time"])).tolist()
    return rejects(found, names, [_why_late(each, delay_us) for each in behind_us])


def _why_late(behind_us: int, delay_us: int) -> str:
    if behind_us <= delay_us:  # its input had ended before, or the delay was shorter
        return "it came late: its result had been emitted already"
    newer = f"a row that is {behind_us / 1_000_000:,.3f} s newer came before it"
    return f"it came late: {newer}, and the delay is {delay_us / 1_000_000:g} s"


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
