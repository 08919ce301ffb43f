"""Computes how long rows usually wait for the commit of their batch. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

_KEPT = 20
_LEAST = 3


def noted(waits_ms: tuple[int, ...], wait_ms: int) -> tuple[int, ...]:
    """Returns the newest few waits, with one more."""
    return (*waits_ms, wait_ms)[-_KEPT:]


def usual_ms(waits_ms: Sequence[int]) -> int | None:
    """Returns the median wait in ms, on which one long wait has no effect. Returns None if there are too few
    waits."""
    return round(median(waits_ms)) if len(waits_ms) >= _LEAST else None
