"""Finds the format of a column with times of day."""

from __future__ import annotations

import re
from collections.abc import Sequence

from webapp.imports.time_formats import CLOCK_DIGITS, CLOCKS
from webapp.imports.time_names import HOUR, SECONDS, is_hint
from webapp.imports.time_text import RANGE, time_reader

_HOUR_TWICE = re.compile(r"0?[1-3][AB]")


def clock_of(name: str, cells: Sequence[str]) -> str | None:
    """Returns the format of a column of times of day, or None."""
    if not cells:
        return None
    some = cells[:400]
    for kind in CLOCKS:
        read = time_reader(f"%Y-%m-%d {kind}")
        bad = sum(read(f"2000-01-01 {cell}") is None for cell in some)
        if bad <= max(0.05 * len(some), min(2, len(some) // 4)):
            return kind
    if (ranges := _clock_of_ranges(name, some)) is not None:
        return ranges
    low = name.lower()
    if not (is_hint(name) or HOUR.search(low) or "hour" in low or "clock" in low or "sec" in low):
        return None
    for kind in CLOCK_DIGITS:
        digits = 6 if kind == "%H%M%S" else 4
        if all(len(cell) == digits and cell.isdecimal() for cell in some):
            return (
                kind if all(time_reader(f"%Y-%m-%d {kind}")(f"2000-01-01 {cell}") for cell in some) else None
            )
    if HOUR.search(low) and _are_hours(some):
        return "%H"
    if _are_hours_and_minutes(some) and not SECONDS.search(low):
        return "hhmm"
    seconds = all(re.fullmatch(r"\d{1,5}(\.\d+)?", cell) and float(cell) <= 86_400 for cell in some)
    return (
        "seconds_of_day"
        if seconds and (SECONDS.search(low) or any(float(cell) > 2400 for cell in some))
        else None
    )


def _clock_of_ranges(name: str, cells: Sequence[str]) -> str | None:
    """Returns the format of ranges of times of day, such as `08:00-08:15` or, of hours, `8-9`."""
    kinds = ["%H:%M", "%H:%M:%S"] + (["%H"] if HOUR.search(name.lower()) or is_hint(name) else [])
    for kind in kinds:
        read = time_reader(f"{RANGE}%Y-%m-%d {kind}")
        if sum(read(f"2000-01-01 {cell}") is None for cell in cells) <= 0.05 * len(cells):
            return RANGE + kind
    return None


def _are_hours(cells: Sequence[str]) -> bool:
    """Returns whether the cells are several of the hours 0 to 23, or 1 to 24. An hour may come twice: 2A and
    2B."""
    cells = [cell[:-1] if _HOUR_TWICE.fullmatch(cell) else cell for cell in cells]
    hours = {int(cell) for cell in cells if len(cell) <= 2 and cell.isdecimal()}
    return all(len(cell) <= 2 and cell.isdecimal() for cell in cells) and len(hours) > 1 and max(hours) <= 24


def _are_hours_and_minutes(cells: Sequence[str]) -> bool:
    """Returns whether the cells are times such as 5, 115 and 2400 for 00:05, 01:15 and 24:00."""
    if not all(len(cell) <= 4 and cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return max(numbers) <= 2400 and max(numbers) >= 100 and all(number % 100 < 60 for number in numbers)
