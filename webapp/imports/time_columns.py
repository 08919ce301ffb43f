"""Which columns hold the time of a row, and how it is written there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from webapp.imports.clock import zone_named
from webapp.imports.shapes import NO_VALUE
from webapp.imports.time_formats import CLOCK_DIGITS, CLOCKS, formats_of, likeliest
from webapp.imports.time_text import time_reader

_NAMES = re.compile(
    r"time|zeit|date|datum|stamp|uhr|^ts$|^t$|^dt$|^utc|^tmst|moment|heure|fecha|hora|^mst$|^gmt|^cet$|^hour$|^sec|elapsed"
)
_NOT_NAMES = re.compile(
    r"temp|batch|runtime|lifetime|duration|dauer|timeout|update|candidate|between|interval"
)
_SECONDS = re.compile(r"\bsec|\bs\b|second|sekunden")
_MILLIS = re.compile(r"\bms\b|milli")
_EPOCHS = (
    ("epoch_s", 631_152_000, 4_102_444_800),
    ("epoch_ms", 631_152_000_000, 4_102_444_800_000),
    ("epoch_us", 631_152_000_000_000, 4_102_444_800_000_000),
    ("epoch_ns", 631_152_000_000_000_000, 4_102_444_800_000_000_000),
)
_EXCEL_DAYS = (20_000.0, 80_000.0)
_PARTS = {
    "%Y": r"^(year|jahr|yyyy|yr)$",
    "%m": r"^(month|monat|mm|mo|mon)$",
    "%d": r"^(day|tag|dd|dy)$",
    "%j": r"^(doy|jday|julian|julian ?day|day of year)$",
    "%H": r"^(hour|stunde|hh|hr)$",
    "%M": r"^(minute|min|mi|mn)$",
    "%S": r"^(second|sekunde|sec|ss)$",
}
RISING_SHARE = 0.9


@dataclass(frozen=True)
class TimeFound:
    """`formats` has more than one entry if nothing says in which order day and month stand."""

    columns: tuple[int, ...]
    formats: tuple[str, ...]
    score: float = 0.0
    others: dict[int, str] = field(default_factory=dict)  # further columns of times, with their formats

    @property
    def format(self) -> str:
        return self.formats[0]


def find(
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    decimal: str,
    pieces: Sequence[Sequence[str]] = (),
) -> TimeFound | None:
    """Returns the time of the rows. `columns` are the cells of each column, in the file's order. `pieces` are
    further cells, which have gaps between them."""
    filled = [_filled(cells) for cells in columns]
    more = [_filled(cells) for cells in pieces] or [[] for _ in columns]
    found = [
        *_parts_apart(names, columns),
        *(
            each
            for at in range(len(columns))
            for each in _alone(at, names[at], filled[at], more[at], decimal)
        ),
    ]
    found += _dates_and_clocks(found, names, columns, filled)
    if not found:
        return None
    best = max(found, key=lambda each: (each.score, -each.columns[0]))
    others = {
        each.columns[0]: each.format
        for each in found
        if len(each.columns) == 1
        and each.columns[0] not in best.columns
        and not each.format.startswith("epoch")
    }
    return TimeFound(best.columns, best.formats, best.score, others)


def _filled(cells: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in cells if cell.strip().lower() not in NO_VALUE]


def _alone(at: int, name: str, cells: Sequence[str], more: Sequence[str], decimal: str) -> list[TimeFound]:
    if not cells:
        return []
    hint = is_hint(name)
    numbers = _counts(cells, decimal)
    if numbers is not None:
        kind = _counted(name, numbers, hint)
        if kind is not None:
            return [TimeFound((at,), (kind,), 2.0 + hint + (1.0 if _rises(numbers) else 0.0))]
    if numbers is not None and not all(len(cell) in (8, 12, 14) for cell in cells[:5]):
        return []
    formats = formats_of([*cells, *more])
    if not formats:
        return []
    if numbers is not None and not hint:
        return []  # a plain number such as 20240501 is a date only where its name says so
    best, doubt = likeliest(formats, cells, name)
    chosen = (best, *(each for each in formats if each != best)) if doubt else (best,)
    clock = 1.0 if (best == "iso" and ":" in cells[0]) or re.search("%[HI]", best) else 0.0
    read = time_reader(best)
    times = [float(moment[0]) for cell in cells if (moment := read(cell)) is not None]
    moves = 1.0 if len(set(times)) > 1 or len(times) < 3 else -1.0
    order = 0.5 if _rises(times) else 0.0
    zoned = 0.25 if zone_named(name) is not None else 0.0
    return [TimeFound((at,), chosen, 3.0 + hint + clock + moves + order + zoned)]


def is_hint(name: str) -> float:
    low = name.lower().strip()
    if _NOT_NAMES.search(low):
        return 0.0
    return 1.0 if _NAMES.search(low) else 0.0


def _counts(cells: Sequence[str], decimal: str) -> list[float] | None:
    try:
        return [float(cell.replace(",", ".") if decimal == "," else cell) for cell in cells]
    except ValueError:
        return None


def _counted(name: str, numbers: Sequence[float], hint: float) -> str | None:
    """Returns the format of a column of counts, if it is one of times."""
    low, high = min(numbers), max(numbers)
    steady = _rises(numbers) or _rises([-each for each in numbers])
    for kind, least, most in _EPOCHS:
        if least <= low and high <= most and (hint or (steady and len(numbers) > 2)):
            return kind
    if not hint or not steady or len(set(numbers)) < 2:
        return None
    fraction = any(each % 1 for each in numbers)
    if _EXCEL_DAYS[0] <= low and high <= _EXCEL_DAYS[1] and fraction:
        return "excel_days"
    if low >= 0 and high < _EPOCHS[0][1]:
        # Seconds since the start: a replay shifts them to now.
        if _MILLIS.search(name.lower()):
            return "epoch_ms"
        if _SECONDS.search(name.lower()) or re.fullmatch(r"(time|zeit|t|elapsed.*)", name.lower().strip()):
            return "epoch_s"
    return None


def _rises(numbers: Sequence[float]) -> bool:
    steps = [after - before for before, after in pairwise(numbers)]
    return bool(steps) and sum(step >= 0 for step in steps) >= RISING_SHARE * len(steps)


def _dates_and_clocks(
    found: Sequence[TimeFound],
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    filled: Sequence[Sequence[str]],
) -> list[TimeFound]:
    """Returns pairs of a date and the time of day in another column."""
    dates = [
        each
        for each in found
        if len(each.columns) == 1
        and not re.search("%[HI]|epoch|excel", each.format)
        and _is_date(filled[each.columns[0]])
    ]
    pairs = []
    for date in dates:
        at = date.columns[0]
        clocks = [
            (other, clock)
            for other in range(len(names))
            if other != at and (clock := _clock(names[other], filled[other]))
        ]
        if not clocks:
            continue
        other, clock = min(clocks, key=lambda each: (abs(each[0] - at), each[0] < at))
        formats = tuple(f"{'%Y-%m-%d' if each == 'iso' else each} {clock}" for each in date.formats)
        if not any(columns[other]) or (date.score < 3 and abs(other - at) != 1):
            continue
        pairs.append(TimeFound((at, other), formats, date.score + 2.0))
    return pairs


def _is_date(cells: Sequence[str]) -> bool:
    return not any(":" in cell for cell in cells[:20])


def _clock(name: str, cells: Sequence[str]) -> str | None:
    """Returns the format of a column of times of day."""
    if not cells:
        return None
    some = cells[:400]
    for kind in CLOCKS:
        if all(time_reader(f"%Y-%m-%d {kind}")(f"2000-01-01 {cell}") is not None for cell in some):
            return kind
    low = name.lower()
    if not (is_hint(name) or "hour" in low or "clock" in low or "sec" in low):
        return None
    for kind in CLOCK_DIGITS:
        digits = 6 if kind == "%H%M%S" else 4
        if all(len(cell) == digits and cell.isdecimal() for cell in some):
            return (
                kind if all(time_reader(f"%Y-%m-%d {kind}")(f"2000-01-01 {cell}") for cell in some) else None
            )
    seconds = all(re.fullmatch(r"\d{1,5}(\.\d+)?", cell) and float(cell) <= 86_400 for cell in some)
    return (
        "seconds_of_day"
        if seconds and (_SECONDS.search(low) or any(float(cell) > 2400 for cell in some))
        else None
    )


def _parts_apart(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[TimeFound]:
    """Returns a time whose year, month, day and so on have columns of their own."""
    places = {
        part: next((at for at, name in enumerate(names) if re.search(pattern, name.lower().strip())), None)
        for part, pattern in _PARTS.items()
    }
    dated = places["%Y"] is not None and (
        places["%j"] is not None or (places["%m"] is not None and places["%d"] is not None)
    )
    if not dated:
        return []
    chosen = ["%Y"] + (["%j"] if places["%m"] is None or places["%d"] is None else ["%m", "%d"])
    for part in ("%H", "%M", "%S"):
        if places[part] is None:
            break
        chosen.append(part)
    at = tuple(place for part in chosen if (place := places[part]) is not None)
    pattern = " ".join(chosen)
    read = time_reader(pattern)
    rows = list(zip(*(columns[place] for place in at), strict=False))[:200]
    good = sum(read(" ".join(cell.strip() for cell in row)) is not None for row in rows)
    return [TimeFound(at, (pattern,), 7.0)] if rows and good >= 0.95 * len(rows) else []
