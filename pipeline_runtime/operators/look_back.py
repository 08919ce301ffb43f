"""The values that lie a time before a row, of one key: in the state, sorted by their event time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from math import inf

from pipeline_runtime.operators.by_key import KEPT_MAX, TooManyKept

Point = Sequence[float]
"""(Event time in ms, value)."""


def before(window: list[list[float]], now_ms: int, window_s: float) -> Sequence[Point]:
    """Those from `window_s` before the time up to it, both included, oldest first. Older ones are
    forgotten."""
    start = bisect_left(window, [now_ms - window_s * 1000, -inf])
    end = bisect_right(window, [now_ms, inf])
    found = window[start:end]
    if end == len(window):  # else the row is late: others may look back further
        del window[:start]
    return found


def keep(window: list[list[float]], now_ms: int, value: float, window_s: float) -> None:
    """One more; TooManyKept beyond KEPT_MAX."""
    if len(window) >= KEPT_MAX:
        # Something from a clock that is ahead may make all others look late.
        del window[: bisect_left(window, [now_ms - window_s * 1000, -inf])]
    if len(window) >= KEPT_MAX:
        raise TooManyKept(f"there are {KEPT_MAX} values in the window already; aggregate them first")
    insort(window, [now_ms, value])
