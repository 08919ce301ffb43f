"""When an alarm must be raised and cleared, from all the values at once: for the oracles of templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

Value = tuple[datetime, float]
Row = dict[str, Any]


def alarms(
    name: str,
    values: Sequence[Value],
    beyond: Callable[[float], bool],
    back: Callable[[float], bool],
    lasts: timedelta,
    worst: Callable[..., float],
) -> list[Row]:
    """`values`: those that are there, in the order of time; `worst`: min or max. A spell is as many values in
    one go as are beyond: the first that is old enough raises the alarm, the next value that is back ends
    it."""
    found: list[Row] = []
    begin = 0
    while begin < len(values):
        spell = begin
        while spell < len(values) and beyond(values[spell][1]):
            spell += 1
        raised = next((n for n in range(begin, spell) if values[n][0] - values[begin][0] >= lasts), None)
        if raised is None:
            begin = spell + 1
            continue
        at, value = values[raised]
        worst_yet = worst(value for _, value in values[begin : raised + 1])
        since = values[begin][0]
        found.append(_row(name, "raised", at, value, since=since, lasted=None, worst=worst_yet))
        cleared = next((n for n in range(raised + 1, len(values)) if back(values[n][1])), None)
        if cleared is None:
            return found
        lowest = worst(value for _, value in values[begin:cleared] if beyond(value))
        ended, value = values[cleared]
        lasted_s = (ended - at).total_seconds()
        found.append(_row(name, "cleared", ended, value, since=ended, lasted=lasted_s, worst=lowest))
        begin = cleared + 1
    return found


def _row(name: str, alarm: str, at: datetime, value: float, **more: Any) -> Row:
    return {"_time": at, "alarm": alarm, name: value, **more}
