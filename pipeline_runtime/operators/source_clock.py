"""Computes when the rows of a source with its own clock are due. Pure arithmetic on positions.

A position is `{"row": n, "t0": ms, "shifts": [[row, ms], ...]}`: the next row to read, the wall clock at the
start, and by how much each stop moved the clock for all rows from some row on. A row's time follows from its
index and the shifts up to it, so it does not depend on how reading is cut.

Two more keys are there once a row was read: `due`, when the next row is due from the clock's start (ms), and
`paced`, by how much other paces than the present one have moved what is due, but not the rows' times.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.operators.sdk import Position

CatchUp = Annotated[
    bool,
    Field(
        title="After a stop, send what was due in the meantime at once",
        description="after a stop, send the rows that were due in the meantime at once; otherwise they are"
        " sent later, at the usual pace",
    ),
]
SHIFTS_MAX = 200
BACKLOG_MS_MAX = 2000
"""A source that does not catch up moves its clock once it is further behind than this."""


def initial_position(now_ms: int) -> Position:
    return {"row": 0, "t0": now_ms, "shifts": []}


def at_row(position: Position, row: int, due_ms: float) -> Position:
    """Returns the position before another row, which is due then, from the clock's start."""
    return {**position, "row": row, "due": due_ms}


def repaced(position: Position, due_ms: float, *, moves_times: bool) -> Position:
    """Returns the position as it goes on with another pace, so that its next row is due when it was.

    `due_ms` is when that row is due by the present pace, from the clock's start. With `moves_times` the rows'
    times follow from the pace, so they are moved as well.
    """
    by_ms = round(position.get("due", due_ms) - due_ms)
    if by_ms == 0:
        return position
    if not moves_times:
        return {**position, "due": due_ms, "paced": position.get("paced", 0) + by_ms}
    return {**_with_shift(position, by_ms), "due": due_ms}


def shifted(position: Position, by_ms: int) -> Position:
    """Returns the position with its clock moved for all rows from here on."""
    return _with_shift(position, by_ms) if by_ms > 0 else position


def _with_shift(position: Position, by_ms: int) -> Position:
    shifts = [*position["shifts"], [position["row"], by_ms]]
    start = position["t0"]
    if len(shifts) > SHIFTS_MAX:
        # The oldest stops lie far behind every checkpoint by now, so they are merged into the start.
        start += sum(ms for _, ms in shifts[:-SHIFTS_MAX])
        shifts = shifts[-SHIFTS_MAX:]
    return {**position, "t0": start, "shifts": shifts}


def clock_start_ms(position: Position) -> int:
    """Returns the start of the clock for rows from this position on."""
    return int(position["t0"]) + sum(int(ms) for _, ms in position["shifts"]) + int(position.get("paced", 0))


def start_us(position: Position, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the start of the clock, in microseconds, for each of these rows."""
    starts = np.full(len(rows), int(position["t0"]) * 1000, dtype=np.int64)
    for row, ms in position["shifts"]:
        starts += np.where(rows >= int(row), int(ms) * 1000, 0)
    return starts


def rows_due(position: Position, now_ms: int, rate: float) -> int:
    """Returns how many rows of an even rate (rows/s) are due since the clock's start."""
    elapsed_ms = now_ms - clock_start_ms(position)
    return int(elapsed_ms * rate / 1000) + 1 if elapsed_ms >= 0 else 0


def without_backlog(position: Position, now_ms: int, due_ms: float) -> Position:
    """Returns the position, with its clock moved on if its next row was due long ago."""
    late_ms = int(now_ms - due_ms)
    return shifted(position, late_ms) if late_ms > BACKLOG_MS_MAX else position


def row_range(start: Position, end: Position) -> tuple[int, int]:
    return int(start["row"]), int(end["row"])
