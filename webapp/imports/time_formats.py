"""Finds the formats in which texts can be times, with each possible order of day and month."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain, islice, pairwise, product

from webapp.imports.characters import unwrapped
from webapp.imports.shapes import WEEKDAYS, shape
from webapp.imports.time_text import (
    ABOVE,
    BETWEEN,
    BETWEEN_MAX,
    HOUR_TWICE,
    OFFSET,
    OR,
    QUARTER,
    RANGE,
    WEEK,
    clock_of,
    time_reader,
)

_DATES: tuple[str, ...] = (
    *(
        "%d.%m.%Y",
        "%d.%m.%y",
        "%d. %b %Y",
        "%d. %m. %Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d/%m/%y",
        "%m/%d/%y",
        "%y/%m/%d",
    ),
    *(
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%d-%m-%y",
        "%m-%d-%y",
        "%y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y:%m:%d",
        "%Y-%m-%d",
        "%Y%m%d",
    ),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d/%b/%Y", "%b %d, %Y", "%b %d %Y", "%Y-%j", "%Y-%b-%d", "%d%b%Y"),
    *("%b %d %H:%M:%S %Y", "%b %d %H:%M:%S %Z %Y", "%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y"),
    *("%d %b %y", "%d%b%y", "%d de %b de %Y", "%Y. %m. %d.", "%Y. %b %d.", "%Y.%m.%d.", "%Y年%m月%d日"),
    *("%Y%m%d%H", "%Y%m%d%H:%M", "%Y/%j", "%Y.%j", "%Y:%j", "%Y %j", "%j/%Y", "%j-%Y", "%y-%j"),
    *("%G-W%V-%u", "%G-W%V", "%GW%V%u", "KW%V/%G", "KW%V %G", "KW%V-%G", "KW%V, %G"),
    *("%GKW%V", "%G-KW%V", "%G KW%V", "%G/KW%V", "%V. KW%G", "%VKW%G"),
)
_MONTHS = (
    *("%m/%Y", "%m.%Y", "%m-%Y", "%Y-%m", "%Y/%m", "%Y.%m"),
    *("%b %Y", "%b-%Y", "%b/%Y", "%b-%y", "%b %y", "%Y-%b", "%Y %b"),
    *("%b/%y", "%b'%y", "%b%Y", "%b%y", "%YM%m", "%Y M%m", "M%m/%Y", "%m %Y", "%Y_%m", "%m/%y", "%y-%b"),
    *("Q%q/%Y", "Q%q %Y", "Q%q-%Y", "%Y-Q%q", "%Y/Q%q", "%Y Q%q", "%YQ%q", "%q. Q%Y", "%qQ%Y"),
    *("Q%q.%Y", "Q%q, %Y", "Q%q/%y", "Q%q %y", "Q%q-%y", "Q%q'%y", "%qQ%y", "%V/%G", "%G/%V", "%G-%V"),
)
"""Dates without a day: those of months and quarters. A week may have the form of a month."""

BY_NAME = ("%j/%Y", "%j-%Y", "%y-%j", "%m/%y", "%y-%b", "%m %Y", "%V/%G", "%G/%V", "%G-%V")
"""Formats that also fit the number of an order or a part. They count only in a column whose name says that it
has dates."""

_DAYS_WITHOUT_YEAR = ("%d-%b", "%b-%d", "%b %d", "%d. %b", "%d.%m.")

_DIGITS = ("%Y%m%d", "%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y")
_WITHOUT_YEAR = ("%b %d", "%d %b", "%d. %b", "%d-%b", "%d.%m.", "%m-%d")
LEAP = "{2024} "
"""The beginning of formats of times without a year, until a person has named the year."""

_JOINS = (" ", "T", ":", "_", "-", "/", ".", ", ", " - ", "D", "")
_CLOCKS = (
    *("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p"),
    *("%H:%M:%S:%f", "%H%M%S", "%H%M", "%H.%M.%S", "%H.%M", "%Hh%M", "%H-%M-%S"),
    *("%I.%M.%S.%f %p", "%I.%M.%S %p", "%H時%M分%S秒", "%H時%M分"),
)
_CLOCKS_BEFORE = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_JOINS_BEHIND_CLOCK = (" ", ", ", " - ")
_ZONES = ("", "%z", " %z", " %Z", "%Z", " (%Z)", " Uhr")
_WEEKDAY = re.compile(rf"(?:{WEEKDAYS})[^\W\d_]{{0,9}}(\.?,? +)(?=\w)", re.IGNORECASE)
_FORMS = {
    **dict.fromkeys(("%m", "%d", "%I", "%M"), r"\d{1,2}"),
    "%H": HOUR_TWICE,
    "%q": "[1-4]",
    **{
        "%Y": r"\d{4}",
        "%y": r"\d{2}",
        "%j": r"\d{3}",
        "%b": r"[^\W\d_]{3,12}\.?",
        "%G": r"\d{4}",
        "%V": r"\d{1,2}",
        "%u": r"[1-7]",
        "%f": r"\d{1,9}",
    },
    **{
        "%S": r"\d{1,2}(?:[.,]\d{1,9})?",
        "%p": r"[AaPp](?:\.? ?[Mm]\.?)?",
        "%Z": r"[A-Z]{3,4}",
        "%z": OFFSET.replace("?P<z>", "?:"),
        "KW": WEEK,
        "Q": QUARTER,
    },
}
_DATE_IN_TEXT = re.compile(
    r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b|\b\d{1,2}[-/.]\d{1,2}[-/.]\d{4}\b"
    r"|\b\d{1,2}\.? [^\W\d_]{3,12}\.? \d{4}\b"
)
CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p", "%H.%M.%S", "%H:%M:%S:%f")
CLOCK_DIGITS = ("%H%M%S", "%H%M")
_OF_DATES = ("%d", "%m", "%b", "%Y", "%y", "%j", "%G", "%V")
READ_MAX = 400
FAMILIES_MAX, WAYS_MAX = 3, 6


@lru_cache(maxsize=4096)
def _reads(text: str) -> tuple[str, ...]:
    """Returns the formats in which this text is a time, the likeliest first."""
    text = unwrapped(text)
    if time_reader("iso")(text) is not None:
        return ("iso",)
    weekday = _WEEKDAY.match(text)
    if weekday is not None:
        before = f"%a{weekday[1].lstrip('.').rstrip()} "
        behind = tuple(_behind_weekday(each, before) for each in _reads(text[weekday.end() :]))
        if behind:
            return behind
    found = tuple(each for each in _that_may_read(text, _DATES) if time_reader(each)(text) is not None)
    without_day = (each for each in _MONTHS if _form(each).fullmatch(text))
    clocked = (some for some in _that_may_read(text, _WITHOUT_YEAR) if re.search("%[HI]", some))
    days = (each for each in _DAYS_WITHOUT_YEAR if _form(each).fullmatch(text))
    without_year = chain(clocked, days)
    others = chain(without_day, (LEAP + each for each in without_year))
    return found or tuple(each for each in others if time_reader(each)(text) is not None)


def in_parts(text: str) -> tuple[str, ...]:
    """Returns the formats of an ISO 8601 text as patterns of strptime."""
    return tuple(each for each in _that_may_read(text, _DATES) if time_reader(each)(text) is not None)


def _that_may_read(text: str, dates: Sequence[str]) -> Iterator[str]:
    """Yields the formats whose form the text has: a date, with a time of day after it or before it."""
    for clock, join in product(_CLOCKS_BEFORE, _JOINS_BEHIND_CLOCK):
        time = _form(clock + join).match(text)
        if time is not None:
            behind = text[time.end() :]
            yield from (f"{clock}{join}{date}" for date in dates if _form(date).fullmatch(behind))
    for date in dates:
        found = _form(date).match(text)
        if found is None:
            continue
        rest = text[found.end() :]
        if not rest:
            yield date
        if "%H" in date:
            continue
        for join, clock in product(_JOINS, _CLOCKS):
            # If nothing stands between the parts, only digits can be told apart.
            if not rest.startswith(join) or (not join and (date not in _DIGITS or ":" in clock)):
                continue
            time = _form(clock).match(rest[len(join) :].lstrip())
            if time is None:
                continue
            behind = rest[len(join) :].lstrip()[time.end() :]
            yield from (f"{date}{join}{clock}{zone}" for zone in _ZONES if _form(zone).fullmatch(behind))


def _behind_weekday(pattern: str, before: str) -> str:
    if pattern.startswith(LEAP):
        return LEAP + before + pattern.removeprefix(LEAP)
    return before + ("%Y-%m-%d" if pattern == "iso" else pattern)


@lru_cache(maxsize=4096)
def _form(pattern: str) -> re.Pattern[str]:
    """Returns a pattern that rules most formats out quickly. Parts with nothing between them have all their
    digits."""
    parts = []
    for token in re.findall(r"(?:%[YymdHIMSj]){2,}|%.|KW|\s+|.", pattern):
        if token.startswith("%") and len(token) > 2:
            digits = sum(4 if part == "Y" else 3 if part == "j" else 2 for part in token[1::2])
            parts.append(rf"\d{{{digits}}}" + (r"(?:[.,]\d{1,9})?" if token.endswith("S") else ""))
        elif token in _FORMS:
            parts.append(_FORMS[token])
        else:
            parts.append(r"\s+" if token.isspace() else re.escape(token))
    return re.compile("".join(parts), re.IGNORECASE)


def dates_in(text: str) -> list[tuple[str, str]]:
    """Returns the dates that a text names, each as ISO 8601 and as written. For 03/04/2024 it returns two."""
    found = []
    for match in _DATE_IN_TEXT.finditer(text):
        for pattern in _reads(match[0]):
            moment = time_reader(pattern)(match[0])
            if moment is not None:
                date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment[0])
                found.append((f"{date:%Y-%m-%d}", match[0]))
    return found


def formats_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the formats in which at least 95 % of the texts are times, the likeliest first.

    If no text decides the order of day, month and year, there is one format for each order.
    """
    some = _spread(texts)
    if not some:
        return ()
    candidates: list[str] = []
    for text in some[:3]:
        candidates += [each for each in _reads(text.strip()) if each not in candidates]
    kept = []
    for candidate in candidates:
        read = time_reader(candidate)
        good = sum(read(text) is not None for text in some)
        if len(some) - good <= max(0.05 * len(some), min(2, len(some) // 4)):
            kept.append((good, candidate))
    best = max((good for good, _ in kept), default=0)
    return _without_repeats([candidate for good, candidate in kept if good == best])


def has_day(time_format: str) -> bool:
    """Returns whether a format names the day. Some formats name only a month or a quarter."""
    return time_format == "iso" or re.search("%[djuV]", time_format) is not None


def mixed_formats_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns two or three formats, joined by ` | `, that together read at least 95 % of the texts, the
    likeliest first.

    Returns () if one format reads all texts, or if no such formats do.
    """
    some = _spread(texts)
    families: list[tuple[str, ...]] = []
    rest = some
    while rest and len(families) < FAMILIES_MAX:
        family = _most_of(rest)
        if not family:
            break
        families.append(family)
        read = time_reader(OR.join(each for each in family))
        rest = [text for text in rest if read(text) is None]
    if len(families) < 2 or len(rest) > 0.05 * len(some):
        return ()
    return tuple(OR.join(each) for each in islice(product(*families), WAYS_MAX))


def _most_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the formats with a day that read most of the texts, if they read several or all of them."""
    places: dict[str, set[int]] = {}
    for place, text in enumerate(texts[:READ_MAX]):
        for each in _sure(_reads(text.strip())):
            if has_day(each) and not each.startswith("{"):
                places.setdefault(each, set()).add(place)
    most = max(places.values(), key=len, default=set())
    if len(most) < min(2, len(texts)):
        return ()
    return _without_repeats([each for each, own in places.items() if own == most])


def range_formats_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns formats of ranges of times such as `01.03.2024 08:00 - 08:15`."""
    some = _spread(texts)
    begins = [begin for text in some if (begin := _begin_of(text))]
    if not some or len(begins) < 0.95 * len(some):
        return ()
    found = (RANGE + each for each in formats_of(begins) if not each.startswith("{"))
    return tuple(
        each for each in found if sum(time_reader(each)(text) is None for text in some) <= 0.05 * len(some)
    )


def _begin_of(text: str) -> str:
    middles = islice(BETWEEN.finditer(text), BETWEEN_MAX)
    begins = (text[: middle.start()].strip() for middle in middles)
    return next((begin for begin in begins if any(has_day(each) for each in _sure(_reads(begin)))), "")


def _sure(formats: Sequence[str]) -> list[str]:
    return [each for each in formats if each not in BY_NAME]


def with_clock(time_format: str, clock: str) -> str:
    """Returns a format of a date, followed by a format of the time of day."""
    mark = RANGE if clock.startswith(RANGE) else ""
    dates = ("%Y-%m-%d" if each == "iso" else each for each in time_format.split(OR))
    return mark + OR.join(f"{each} {clock.removeprefix(RANGE)}" for each in dates)


def formats_below_dates(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns formats of times if the first text has a date, and most texts below it have none."""
    some = _spread(texts)
    dated = [text for text in some if shape(text) == "time"]
    clocks = [text for text in some if shape(text) == "clock"]
    if not dated or some[0] not in dated or len(clocks) < len(dated):
        return ()
    formats = [*formats_of(dated)]
    if formats == ["iso"]:
        formats = [each for each in in_parts(dated[0]) if clock_of(each)][:1]
    below = [ABOVE + each for each in formats if clock_of(each) and not each.startswith("{")]
    return tuple(
        each for each in below if sum(time_reader(each)(text) is None for text in some) <= 0.05 * len(some)
    )


def _spread(texts: Sequence[str]) -> list[str]:
    step = max(1, len(texts) // READ_MAX)
    return list(texts[::step])


def _without_repeats(formats: Sequence[str]) -> tuple[str, ...]:
    """Removes formats that have the same meaning as another: `%d` before `%m` is kept beside `%m` before
    `%d`."""
    kept: dict[tuple[str, ...], str] = {}
    for each in formats:
        order = tuple(part for part in re.findall(r"%[A-Za-z]", each) if part in _OF_DATES)
        kept.setdefault(order, each)
    return tuple(kept.values())


def likeliest(formats: Sequence[str], texts: Sequence[str], header: str) -> tuple[str, bool]:
    """Returns (the format, whether it is in doubt). First the header decides, then even steps."""
    if len(formats) == 1:
        return formats[0], False
    hinted = [each for each in formats if _spelled(each) in header.lower().replace(" ", "")]
    if len(hinted) == 1:
        return hinted[0], False
    regular = {each: _regularity(each, texts) for each in formats}
    ranked = sorted(formats, key=lambda each: -regular[each])
    if regular[ranked[0]] >= 0.95 and regular[ranked[1]] < 0.75:
        return ranked[0], False
    return formats[0], True


def _spelled(pattern: str) -> str:
    """Returns the date as headers write it: mm/dd/yyyy."""
    date = re.split(r"[ T_]|:|%H|%I", pattern)[0]
    for part, letters in (("%Y", "yyyy"), ("%y", "yy"), ("%m", "mm"), ("%d", "dd")):
        date = date.replace(part, letters)
    return date


def _regularity(pattern: str, texts: Sequence[str]) -> float:
    """Returns the share of the usual step among the steps from text to text."""
    read = time_reader(pattern)
    times = [moment[0] for text in texts[:READ_MAX] if (moment := read(text)) is not None]
    return max(_share_of_usual(times), _share_of_usual(_months(times)))


def _share_of_usual(times: Sequence[int]) -> float:
    steps = [after - before for before, after in pairwise(times)]
    if len(steps) < 2 or not any(steps):
        return 0.0
    usual = max(set(steps), key=steps.count)
    if usual == 0:
        moving = [step for step in steps if step]
        usual = max(set(moving), key=moving.count)
        return sum(step in (0, usual) for step in steps) / len(steps)
    return steps.count(usual) / len(steps)


def _months(times: Sequence[int]) -> list[int]:
    """Returns the months if each time is the first moment of a month, because a month is a usual step,
    too."""
    moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time) for time in times]
    if any((moment.day, moment.hour, moment.minute) != (1, 0, 0) for moment in moments):
        return []
    return [moment.year * 12 + moment.month for moment in moments]
