"""Computes in plain Python what the templates on simulated machines must put out: averages of windows, and
alarms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]


def averages(rows: Iterable[Row], seconds: int, average: str, highest: str) -> list[Row]:
    """Returns for each window the average of the one column, and the highest of the other."""
    windows: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        windows[int(row["_time"].timestamp()) // seconds].append(row)
    return [
        {
            average: sum(row[average] for row in windows[number]) / len(windows[number]),
            highest: max(row[highest] for row in windows[number]),
            "_time": datetime.fromtimestamp(0, UTC) + timedelta(seconds=(number + 1) * seconds),
        }
        for number in sorted(windows)
    ]


def alarms(
    rows: Iterable[Row], column: str, beyond: Callable[[float], bool], back: Callable[[float], bool]
) -> list[tuple[str, datetime]]:
    """Returns each alarm that is raised or cleared, with its time."""
    found: list[tuple[str, datetime]] = []
    is_raised = False
    for row in rows:
        if (back if is_raised else beyond)(row[column]):
            is_raised = not is_raised
            found.append(("raised" if is_raised else "cleared", row["_time"]))
    return found
