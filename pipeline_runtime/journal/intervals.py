"""How far apart a group's commits usually are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

_TIMES_KEPT = 21
_INTERVALS_MIN = 3


def noted(times: tuple[int, ...], at_ms: int) -> tuple[int, ...]:
    """With one more, of the newest few."""
    return (*times, at_ms)[-_TIMES_KEPT:]


def usual_ms(times: Sequence[int]) -> int | None:
    """The median interval, in ms: one pause among them does not count. None: too few to tell."""
    intervals = [later - earlier for earlier, later in pairwise(times)]
    return round(median(intervals)) if len(intervals) >= _INTERVALS_MIN else None
