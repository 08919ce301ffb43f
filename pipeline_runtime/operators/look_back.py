"""The values of one key in the time before a row. In the state they are sorted by event time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from math import inf

from pipeline_runtime.operators.by_key import KEPT_MAX, TooManyKept

Point = Sequence[float]
"""(event time in ms, value)."""


def before(window: list[list[float]], now_ms: int, window_s: float) -> Sequence[Point]:
    """Returns those from `window_s` before the time up to it, both included, oldest first. Older ones are
    forgotten."""
    start = bisect_left(window, [now_ms - window_s * 1000, -inf])
    end = bisect_right(window, [now_ms, inf])
    found = window[start:end]
    if end == len(window):  # otherwise the row is late, and other rows may look back further
        del window[:start]
    return found


def taken(
    window: list[list[float]], now_ms: int, value: float, window_s: float
) -> Sequence[Point] | TooManyKept:
    """Keeps one more value, and returns those from `window_s` before its time up to it, oldest first. Beyond
    KEPT_MAX it returns an error instead, and keeps everything as it was."""
    kept = window[:] if len(window) >= KEPT_MAX else []
    found = before(window, now_ms, window_s)
    if len(window) >= KEPT_MAX:
        # A row from a clock that is ahead may make all others look late.
        del window[: bisect_left(window, [now_ms - window_s * 1000, -inf])]
    if len(window) >= KEPT_MAX:
        window[:] = kept
        return TooManyKept(f"there are {KEPT_MAX} values in the window already; aggregate them first")
    insort(window, [now_ms, value])
    return found
