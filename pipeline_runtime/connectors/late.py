"""Finds rows that are too old to be written to a machine. Pure."""

from __future__ import annotations


def late(time_ms: int, late_s: float | None, now_s: float) -> str | None:
    """Returns why a row is not written any more, or None if it still is."""
    age_s = now_s - time_ms / 1000
    if late_s is None or age_s <= late_s:
        return None
    return f"it is {age_s:.0f} s old, and is not written after {late_s:g} s"
