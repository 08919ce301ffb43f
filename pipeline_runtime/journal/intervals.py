"""How far apart a group's commits usually are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

_TIMES_KEPT = 21
_INTERVALS_MIN = 3


def noted(times: tuple[int, ...], at_ms: int) -> tuple[int, ...]:
    """Returns the newest few times, with one more."""
    return (*times, at_ms)[-_TIMES_KEPT:]


def usual_ms(times: Sequence[int]) -> int | None:
    """Returns the median interval in ms, on which one pause has no effect. Returns None if there are too few
    times."""
    intervals = [later - earlier for earlier, later in pairwise(times)]
    return round(median(intervals)) if len(intervals) >= _INTERVALS_MIN else None
