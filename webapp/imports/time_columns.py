"""Finds the columns with the time of a row, and the format of this time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from webapp.imports.clock import zone_named
from webapp.imports.clock_columns import clock_of
from webapp.imports.shapes import is_no_value
from webapp.imports.time_follows import TimeFound, with_what_follows
from webapp.imports.time_formats import (
    BY_NAME,
    CLOCKS,
    LEAP,
    formats_below_dates,
    formats_of,
    has_day,
    likeliest,
    mixed_formats_of,
    range_formats_of,
    with_clock,
)
from webapp.imports.time_names import SECONDS, is_hint
from webapp.imports.time_parts import parts_without_names
from webapp.imports.time_text import (
    COUNTED,
    LABVIEW_EPOCH_S,
    MONTHS,
    NTP_EPOCH_S,
    time_reader,
)

_NO_CLOCK = re.compile(
    r"^dur|duration|dauer|laufzeit|runtime|elapsed|length|sunrise|sunset|aufgang|untergang"
    r"|artikel|article|material|order|auftrag|serial|charge|batch|(?<![a-z])(?:nr|no|id)\.?$|nummer$|nr\.?$"
)
"""Names of columns in which 06:30 is not the time of the row, although there is a column of dates."""

_MILLIS = re.compile(r"\bms\b|milli")
_EPOCHS = (
    ("epoch_s", 631_152_000, 4_102_444_800),
    ("epoch_ms", 631_152_000_000, 4_102_444_800_000),
    ("epoch_us", 631_152_000_000_000, 4_102_444_800_000_000),
    ("epoch_ns", 631_152_000_000_000_000, 4_102_444_800_000_000_000),
)
_FAR_S = 2_051_222_400  # the year 2035
_COUNT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_SHORT_DATES = "%y%m%d%H%M"
_TICKS = (("filetime", 1.2e17, 1.5e17), ("dotnet_ticks", 6.3e17, 6.6e17))
_EXCEL_DAYS = (20_000.0, 80_000.0)
_FAR_DAYS = 49_310  # the year 2035 in Excel
_MATLAB_DAYS = (700_000.0, 780_000.0)
_JULIAN_DAYS = (2_440_000.0, 2_480_000.0)
_MONTHS = re.compile("monat|month|mois|mes$|mese|maand|quart|period|zeitraum")
_WEEKS = re.compile("woche|week|semaine|^kw$|^cw$|wk")
_YEARS = re.compile("year|jahr|^ann|^a\u00f1o|^anno$|^yr$|^yyyy$")
_DATES = re.compile("dat|tag|day|fecha|giorno|jour|dia|doy|^yyyymm")
_MONTH, _CENTURY = "(?:0[1-9]|1[0-2])", "(?:19|20)"
_DIGITS_OF_DATES = {
    "%Y%m%d%H": rf"{_CENTURY}\d\d{_MONTH}(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-4])",
    "%Y%j": rf"{_CENTURY}\d\d[0-3]\d\d",
    "%Y%m": rf"{_CENTURY}\d\d{_MONTH}",
    "%G%V": rf"{_CENTURY}\d\d(?:0[1-9]|[1-4]\d|5[0-3])",
    # No year after 2034, because numbers from 36,526 on are days of this century in Excel.
    "%y%j": r"(?:[0-2]\d|3[0-4])[0-3]\d\d",
    "%Y.%j": rf"{_CENTURY}\d\d\.[0-3]\d\d",
    "%Y.%m": rf"{_CENTURY}\d\d\.{_MONTH}",
    "%m.%Y": rf"{_MONTH}\.{_CENTURY}\d\d",
    "%Y": rf"{_CENTURY}\d\d",
}
"""Numbers that may be dates if the name of their column says so."""

_PARTS = {
    "%Y": r"^(year|jahr|yyyy|yy|yr)$",
    "%m": r"^(month|monat|mm|mo|mon)$",
    "%d": r"^(day|tag|dd|dy)$",
    "%j": r"^(doy|jday|yday|julian|julian ?day|day[ _]?of[ _]?year|tag im jahr|jahrestag)$",
    "%H": r"^(hour|stunde|hh|hr)$",
    "%M": r"^(minute|min|mi|mn)$",
    "%S": r"^(second|sekunde|sec|ss)$",
    "%V": r"^(kw|week|woche|kalenderwoche|calendar week|iso ?week|wk)$",
}
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun", "mo", "di", "mi", "do", "fr", "sa", "so")
RISING_SHARE = 0.9
DAYS_MIN = 3
_NO_NAME = re.compile(r"c\d+")
_DAY_DIGITS = re.compile(r"(?:19|20)\d{6}(?:\d{4}(?:\d\d)?)?", re.ASCII)
_DATE_OF_COLONS = re.compile(r"\d{4}:\d\d:\d\d", re.ASCII)  # the form that cameras write
NO_DATE = "1970-01-01"
"""The day of times without a date, until a person has named the day."""


def find(
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    decimal: str,
    pieces: Sequence[Sequence[str]] = (),
) -> TimeFound | None:
    """Returns the time of the rows. `columns` has the cells of each column, in the file's order. `pieces` has
    further cells, with gaps between the pieces."""
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
    found += _words_apart(columns)
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
    return with_what_follows(replace(best, others=others), names, filled)


def _filled(cells: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in cells if not is_no_value(cell)]


def _alone(at: int, name: str, cells: Sequence[str], more: Sequence[str], decimal: str) -> list[TimeFound]:
    if not cells:
        return []
    hint = is_hint(name)
    numbers = _counts(cells, decimal)
    if (formats := _in_digits(name, cells, hint)) and numbers is not None:
        return [TimeFound((at,), formats, 3.0 + hint)]
    if numbers is not None:
        kind = _counted(name, numbers, hint)
        if kind == "epoch_s" and min(numbers) > _FAR_S:
            kind = _counted_otherwise(name, cells, numbers)
        if kind is not None:
            return [TimeFound((at,), (kind,), 2.0 + hint + (1.0 if _rises(numbers) else 0.0))]
    if numbers is not None and not (hint and _are_digits_of_dates(name, cells[:5])):
        # A plain number such as 20240501 is a date if the column's name says so, or if the numbers are days
        # in a row.
        form = _of_days_that_go_on(cells) if _NO_NAME.fullmatch(name) is not None else None
        return [TimeFound((at,), (form,), 2.0)] if form is not None else []
    formats = _formats(name, cells, more)
    if not formats:
        return []
    best, doubt = likeliest(formats, cells, name)
    chosen = (best, *(each for each in formats if each != best)) if doubt else (best,)
    clock = 1.0 if (best == "iso" and ":" in cells[0]) or re.search("%[HI]", best) else 0.0
    read = time_reader(best)
    times = [float(moment[0]) for cell in cells if (moment := read(cell)) is not None]
    moves = 1.0 if len(set(times)) > 1 or len(times) < 3 else -1.0
    order = 0.5 if _rises(times) else 0.0
    zoned = 0.25 if zone_named(name) is not None else 0.0
    return [TimeFound((at,), chosen, 3.0 + hint + clock + moves + order + zoned)]


def _formats(name: str, cells: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Returns the formats of a column of times: one format, or else two formats, or one of ranges."""
    texts = [*cells, *more]
    formats = _by_name(name, formats_of(texts))
    if formats and not any(map(has_day, formats)):
        # Months are no times if 01/2022 may be the number of an order.
        times = [moment[0] for cell in cells if (moment := time_reader(formats[0])(cell)) is not None]
        steady = len(set(times)) > 1 and (_rises(times) or _rises([-each for each in times]))
        return formats if steady or is_hint(name) or _MONTHS.search(name.lower()) else ()
    lost = [text for text in texts if time_reader(formats[0])(text) is None] if formats else texts
    if len(lost) < 2:
        return formats
    mixed = formats_below_dates(cells) or mixed_formats_of(texts)
    if mixed:
        read = time_reader(mixed[0])
        return mixed if 2 * sum(read(text) is None for text in texts) < len(lost) else formats
    return formats or range_formats_of(texts)


def _by_name(name: str, formats: Sequence[str]) -> tuple[str, ...]:
    """Returns the formats that a column of this name may have. For example, 5/2022 is a week only if the name
    says so."""
    low = name.lower()
    if _WEEKS.search(low):
        weeks = tuple(each for each in formats if "%V" in each)
        return weeks or tuple(formats)
    of_time = bool(is_hint(name) or _DATES.search(low) or _MONTHS.search(low))
    kept = tuple(
        each
        for each in formats
        if (of_time or (each not in BY_NAME and (not each.startswith(LEAP) or re.search("%[HIb]", each))))
        and not (each in BY_NAME and "%V" in each)
    )
    years = tuple(each for each in kept if not each.startswith(LEAP))
    return years if years and _MONTHS.search(low) else kept


def _in_digits(name: str, cells: Sequence[str], hint: float) -> tuple[str, ...]:
    """Returns the formats of numbers that are dates by the name of their column: 202101, 2021051, 2021.

    If the name says only that they are times, and all are of one year, they may be seconds instead.
    """
    low = name.lower().strip()
    of_weeks = _WEEKS.search(low)
    by_name = of_weeks or _MONTHS.search(low) or _DATES.search(low) or _YEARS.search(low)
    if not hint and not by_name:
        return ()
    for form, pattern in _DIGITS_OF_DATES.items():
        if (of_weeks and "%V" not in form) or not all(re.fullmatch(pattern, cell) for cell in cells):
            continue
        read = time_reader(form)
        times = [float(moment[0]) for cell in cells if (moment := read(cell)) is not None]
        steady = _rises(times) or _rises([-each for each in times])
        if len(times) < len(cells) or not steady or len(set(times)) < 2:
            continue
        if form == "%Y" and not _YEARS.search(low):
            return (form, "epoch_s") if hint else ()
        years = len({cell[: 2 if form.startswith("%y") else 4] for cell in cells})
        sure = by_name or form in ("%Y%m%d%H", "%m.%Y") or years > 1
        others = [each for each in formats_of(cells) if "%d" in each] if form == "%Y%m" else []
        return (form, *others) if sure else (form, "epoch_s")
    return ()


def _counted_otherwise(name: str, cells: Sequence[str], numbers: Sequence[float]) -> str:
    """Returns the format of counts that would be far in the future as seconds since 1970: 2405010800 is in
    May 2024. Seconds that LabVIEW would write only in the future are those of NTP, which begin 4 years
    earlier."""
    read = time_reader(_SHORT_DATES)
    if all(len(cell) == 10 and read(cell) is not None for cell in cells):
        return _SHORT_DATES
    last = max(numbers)
    tomorrow_s = (datetime.now(UTC) + timedelta(days=1)).timestamp()
    is_later = last - LABVIEW_EPOCH_S > tomorrow_s >= last - NTP_EPOCH_S
    if last - NTP_EPOCH_S <= _FAR_S and (is_later or "ntp" in name.lower()):
        return "ntp_s"
    return "labview_s" if last - LABVIEW_EPOCH_S <= _FAR_S else "epoch_s"


def _are_digits_of_dates(name: str, cells: Sequence[str]) -> bool:
    """Returns whether the numbers have as many digits as a date. Six digits may also be a time of day."""
    if all(len(cell) == 6 for cell in cells):
        return _DATES.search(name.lower()) is not None
    return all(len(cell) in (8, 12, 14) for cell in cells)


def _of_days_that_go_on(cells: Sequence[str]) -> str | None:
    """Returns the format of digits that are days or moments, each later than the one before, or None."""
    form = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}.get(len(cells[0]))
    if form is None or len(cells) < DAYS_MIN or not all(map(_DAY_DIGITS.fullmatch, cells)):
        return None
    read = time_reader(form)
    times = [moment[0] for cell in cells if (moment := read(cell)) is not None]
    goes_on = len(times) == len(cells) and all(before < after for before, after in pairwise(times))
    return form if goes_on else None


def _counts(cells: Sequence[str], decimal: str) -> list[float] | None:
    texts = [cell.replace(",", ".") if decimal == "," else cell for cell in cells]
    return [float(text) for text in texts] if all(map(_COUNT.fullmatch, texts)) else None


def _counted(name: str, numbers: Sequence[float], hint: float) -> str | None:
    """Returns the format of a column of counts if they are times, or None."""
    low, high = min(numbers), max(numbers)
    steady = _rises(numbers) or _rises([-each for each in numbers])
    for kind, least, most in _TICKS:
        # As nanoseconds since 1970, ticks of .NET would all be in 1990.
        if least <= low and high <= most and (hint or kind == "dotnet_ticks") and steady:
            return kind
    for kind, least, most in _EPOCHS:
        if least <= low and high <= most and (hint or (steady and len(numbers) > 2)):
            return kind
    if not hint or not steady or len(set(numbers)) < 2:
        return None
    fraction = any(each % 1 for each in numbers)
    if _EXCEL_DAYS[0] <= low and high <= _EXCEL_DAYS[1] and (fraction or _DATES.search(name.lower())):
        return "modified_julian_days" if low > _FAR_DAYS or "mjd" in name.lower() else "excel_days"
    if _JULIAN_DAYS[0] <= low and high <= _JULIAN_DAYS[1]:
        return "julian_days"
    if _MATLAB_DAYS[0] <= low and high <= _MATLAB_DAYS[1] and _DATES.search(name.lower()):
        return "matlab_days"
    if low >= 0 and high < _EPOCHS[0][1]:
        # Seconds since the start. A replay moves them to the present.
        if _MILLIS.search(name.lower()):
            return "epoch_ms"
        if SECONDS.search(name.lower()) or re.fullmatch(r"(time|zeit|t|elapsed.*)", name.lower().strip()):
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
        and not (each.format in COUNTED or re.search("%[HI]", each.format))
        and _is_date(filled[each.columns[0]])
    ]
    with_dates = {date.columns[0] for date in dates}
    pairs = []
    for date in dates:
        at = date.columns[0]
        clocks = [
            (other, clock)
            for other in range(len(names))
            if other != at
            and not (other in with_dates and _DATES.search(names[other].lower()))
            and not _NO_CLOCK.search(names[other].lower())
            and (clock := clock_of(names[other], filled[other]))
        ]
        if not clocks:
            continue
        other, clock = min(clocks, key=lambda each: (abs(each[0] - at), each[0] < at))
        formats = tuple(with_clock(each, clock) for each in date.formats)
        if not any(columns[other]) or (date.score < 3 and abs(other - at) != 1):
            continue
        places: tuple[int, ...] = (at, other)
        for part in ("%M", "%S") if clock == "%H" else ():
            place = _place_of(part, names)
            if place is None or not all(cell.isdecimal() and int(cell) < 60 for cell in filled[place]):
                break
            places, formats = (*places, place), tuple(f"{each} {part}" for each in formats)
        pairs.append(TimeFound(places, formats, date.score + 2.0))
    return pairs


def times_of_day(names: Sequence[str], columns: Sequence[Sequence[str]]) -> TimeFound | None:
    """Returns the column of times of day without a date. It is the one whose name says that it is the time,
    or else the first one.

    The times rise from row to row, or fall, except at midnight.
    """
    found = []
    for at, name in enumerate(names):
        cells = _filled(columns[at])
        if not cells or not all(":" in cell for cell in cells[:20]) or _is_date(cells):
            continue
        pattern = f"{{{NO_DATE}}} {clock_of(name, cells) or CLOCKS[0]}"
        times = [moment[0] for cell in cells if (moment := time_reader(pattern)(cell)) is not None]
        if len(times) >= 0.95 * len(cells) and (_rises(times) or _rises(times[::-1])):
            found.append(TimeFound((at,), (pattern,), is_hint(name)))
    return max(found, key=lambda each: (each.score, -each.columns[0]), default=None)


def _year_and_month(year: int, month: int, columns: Sequence[Sequence[str]]) -> list[TimeFound]:
    """Returns the time that is made of a year and the name of a month, in two columns."""
    read = time_reader("%Y %b")
    rows = list(zip(columns[year], columns[month], strict=False))[:200]
    good = sum(read(f"{one.strip()} {other.strip()}") is not None for one, other in rows)
    return [TimeFound((year, month), ("%Y %b",), 7.0)] if rows and good >= 0.95 * len(rows) else []


def _place_of(part: str, names: Sequence[str]) -> int | None:
    """Returns the first column whose name is this part of a time."""
    return next((at for at, name in enumerate(names) if re.search(_PARTS[part], name.lower().strip())), None)


def _words_apart(columns: Sequence[Sequence[str]]) -> list[TimeFound]:
    """Returns a time whose parts are several cells, because spaces divide the cells: `Nov 28 07:31:02`."""
    for begin in range(min(len(columns), 6)):
        word = (columns[begin][0] if columns[begin] else "").strip().lower().rstrip(".,")
        following = columns[begin + 1][0].strip().lower() if begin + 1 < len(columns) and word else ""
        is_wrapped = word.startswith("[") and following.endswith("]")  # [01/May/2024:00:00:00 +0000]
        is_named = word[:3] in _WEEKDAYS or word in MONTHS or following.rstrip(".,") in MONTHS
        if not is_named and not is_wrapped:
            continue
        for size in (2,) if is_wrapped else (6, 5, 4, 3):
            some = columns[begin : begin + size]
            if len(some) < size:
                continue
            texts = [" ".join(cells).strip() for cells in zip(*(each[:400] for each in some), strict=False)]
            formats = [each for each in formats_of(texts) if re.search("%[HI]", each)]
            if formats:
                return [TimeFound(tuple(range(begin, begin + size)), tuple(formats), 6.0)]
    return []


def _is_date(cells: Sequence[str]) -> bool:
    return not any(":" in cell and not _DATE_OF_COLONS.fullmatch(cell) for cell in cells[:20])


def _are_days_of_a_year(cells: Sequence[str]) -> bool:
    days = {int(cell) if cell.isdecimal() and len(cell) < 4 else 0 for cell in _filled(cells)}
    return bool(days) and min(days) > 0 and 31 < max(days) <= 366


def _parts_apart(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[TimeFound]:
    """Returns a time whose year, month, day and other parts have columns of their own."""
    places = {part: _place_of(part, names) for part in _PARTS}
    if places["%Y"] is None:
        parts = parts_without_names(names, columns)
        return [TimeFound(tuple(range(len(parts))), (" ".join(parts),), 7.0)] if parts else []
    if places["%m"] is not None and places["%d"] is not None:
        chosen = ["%Y", "%m", "%d"]
    elif places["%j"] is not None:
        chosen = ["%Y", "%j"]
    elif places["%d"] is not None and places["%m"] is None and _are_days_of_a_year(columns[places["%d"]]):
        places["%j"], chosen = places["%d"], ["%Y", "%j"]
    elif places["%V"] is not None:
        chosen = ["%Y", "%V"]
    elif places["%m"] is not None:
        chosen = ["%Y", "%m"]
        if not all(cell.strip().isdecimal() for cell in columns[places["%m"]][:20] if cell.strip()):
            return _year_and_month(places["%Y"] or 0, places["%m"], columns)
    else:
        return []
    if places["%H"] is not None and places["%M"] is None:
        behind = names[places["%H"] + 1 : places["%H"] + 2]
        places["%M"] = places["%H"] + 1 if behind and behind[0].strip().lower().startswith("mm") else None
    for part in ("%H", "%M", "%S"):
        if places[part] is None:
            break
        chosen.append(part)
    at = tuple(place for part in chosen if (place := places[part]) is not None)
    if "%H" not in chosen:
        for place, name in enumerate(names):
            if place not in at and is_hint(name) and (clock := clock_of(name, _filled(columns[place]))):
                chosen, at = [*chosen, clock], (*at, place)
                break
    pattern = " ".join(chosen).replace("%Y %V", "%G %V")
    read = time_reader(pattern)
    rows = list(zip(*(columns[place] for place in at), strict=False))[:200]
    good = sum(read(" ".join(cell.strip() for cell in row)) is not None for row in rows)
    return [TimeFound(at, (pattern,), 7.0)] if rows and good >= 0.95 * len(rows) else []
