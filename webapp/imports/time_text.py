"""Reads times from texts. The preview and the import use the same formats.

A format is one of these:

    iso                                  ISO 8601; the name of a zone after the time is ignored
    {2024-05-01 10:20:30} seconds        seconds since that moment
    epoch_s, epoch_ms, epoch_us, epoch_ns   since 1970
    labview_s                            seconds since 1904, in UTC
    ntp_s                                seconds since 1900, in UTC, as in the network time protocol
    filetime                             tenths of microseconds since 1601, in UTC
    dotnet_ticks                         tenths of microseconds since the year 1
    excel_days, excel_days_1904, matlab_days, julian_days, modified_julian_days
    a pattern of strptime

In a pattern:

    %S          may have a fraction; 24:00 is the next midnight
    milliseconds    follow a second, in a column of their own
    seconds_of_day  the seconds since the midnight of the date
    hhmm        5 for 00:05
    %b, %B      names of months in the languages of MONTHS
    %a          the name of a day, which is ignored
    %Z          the present name of the zone, such as CEST
    %j          may have a fraction of a day
    %G, %V, %u  a year, a week and a day of ISO 8601; without a day, the week begins on Monday
    KW, Q       any word for a week, any word for a quarter
    %q          a quarter

A run of spaces counts as one space. A year, a month or a quarter without a day means its first day. Several
formats are joined by ` | `: the first one that fits reads the text.

A part in braces before a format adds what the texts lack:

    {2024}        for times without a year: `year_of` returns the year of the first row
    {2024-05-01}  for times of day: `date_of` returns the date of the first row; hours may exceed 24
    {above}       for times whose date may stand in a row above; a time without a date gets the first day
                  of the year 1, which `turns` replaces
    {range}       for ranges such as 08:00-08:15: their beginning
    {range end}   for such ranges: their end
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice

from webapp.imports.characters import in_ascii, unwrapped

DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  local times are counted from it
_YEAR_1_US, _YEAR_10000_US = -62_135_596_800_000_000, 253_402_300_800_000_000
TEXT_MAX = 120

_EPOCHS_US = {"epoch_s": Decimal(1_000_000), "epoch_ms": Decimal(1000), "epoch_us": Decimal(1)}
_EPOCHS_US["epoch_ns"] = Decimal("0.001")
_TENTHS_BEFORE_1970 = {"filetime": 116_444_736_000_000_000, "dotnet_ticks": 621_355_968_000_000_000}
LABVIEW_EPOCH_S = 2_082_844_800
"""Seconds from 1904, when LabVIEW begins to count, to 1970."""
NTP_EPOCH_S = 2_208_988_800
"""Seconds from 1900, when the network time protocol begins to count, to 1970."""

_DAYS_BEFORE_1970 = {
    "excel_days": Decimal(25_569),
    "excel_days_1904": Decimal(24_107),
    "matlab_days": Decimal(719_529),
    "julian_days": Decimal("2440587.5"),
    "modified_julian_days": Decimal(40_587),
}
_SECONDS_BEFORE_1970 = {"labview_s": LABVIEW_EPOCH_S, "ntp_s": NTP_EPOCH_S}
COUNTED = (*_EPOCHS_US, *_SECONDS_BEFORE_1970, *_TENTHS_BEFORE_1970, *_DAYS_BEFORE_1970)
"""Formats that are a count of seconds or days."""

SINCE = "{{{}}} seconds"
"""The format of seconds that count from a moment, such as `{2024-05-01 10:20:30.5} seconds`."""

COUNTED_IN_UTC = (*_EPOCHS_US, *_SECONDS_BEFORE_1970, "filetime")

_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,2})?", re.ASCII)
_ZONE_NAME = r"[A-Za-z][A-Za-z0-9_+-]{1,20}(?:/[A-Za-z0-9_+-]{1,20}){0,2}"
_ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:T *| +)(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,](\d{1,9}))?)?"
    r"(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?"
    rf"(?:\[{_ZONE_NAME}\]| (?=\w+/){_ZONE_NAME})?",
    re.ASCII,
)
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar jän jänner janv janvier ene enero gen gennaio januari janeiro január januára "
            "sty styczeń stycznia led leden ledna янв январь января",
            "feb february februar févr février fév febrero febbraio februari fev fevereiro február februára "
            "lut luty lutego úno únor února фев февр февраль февраля",
            "mar march mär märz mrz mars marzo mrt maart março marts március "
            "marzec marca bře březen března мар март марта",
            "apr april avr avril abr abril aprile április apríla "
            "kwi kwiecień kwietnia dub duben dubna апр апрель апреля",
            "may mai mayo mag maggio mei maj maja maio május mája kvě květen května май мая",
            "jun june juni juin junio giu giugno junho június júna "
            "cze czerwiec czerwca čvn červen června июн июнь июня",
            "jul july juli juil juillet julio lug luglio julho július júla "
            "lip lipiec lipca čvc červenec července июл июль июля",
            "aug august août ago agosto augustus augusti augusztus augusta "
            "sie sierpień sierpnia srp srpen srpna авг август августа",
            "sep sept september septembre septiembre set settembre setembro szeptember septembra "
            "wrz wrzesień września zář září сен сент сентябрь сентября",
            "oct october okt oktober octobre octubre ott ottobre out outubro október októbra "
            "paź październik października říj říjen října окт октябрь октября",
            "nov november novembre noviembre novembro novembra "
            "lis listopad listopada listopadu ноя нояб ноябрь ноября",
            "dec december dez dezember déc décembre dic diciembre dicembre dezembro des desember decembra "
            "gru grudzień grudnia pro prosinec prosince дек декабрь декабря",
        ),
        1,
    )
    for name in names.split()
}
_HOURS_EAST_WORDS = """
UTC 0 GMT 0 WET 0 CET 1 MEZ 1 WEST 1 BST 1 CEST 2 MESZ 2 EET 2 EEST 3 MSK 3 JST 9 KST 9 AEST 10 AEDT 11
NZST 12 NZDT 13 EDT -4 EST -5 CDT -5 CST -6 MDT -6 MST -7 PDT -7 PST -8 AKDT -8 AKST -9 HST -10
"""
_HOURS_EAST = _HOURS_EAST_WORDS.split()
ABBREVIATIONS = {word: int(hours) for word, hours in zip(_HOURS_EAST[::2], _HOURS_EAST[1::2], strict=True)}
"""Hours from UTC of what stands behind a time."""

WEEK = r"(?:KW|CW|WK|WEEK|WOCHE|SEMAINE|SEM|W|S)\.?[ -]?"
QUARTER = r"(?:QUARTAL|QUARTER|QTR|TRIMESTRE|TRIM|Q|T)\.? ?"
OFFSET = r"\(?(?:(?:GMT|UTC) ?)?(?P<z>Z|[+-]\d{1,2}(?::?\d\d)?)\)?(?: ?\([^()]{2,40}\)| [A-Z]{3,4})?"
"""+02:00, GMT+2 or (UTC+2), with the zone's name behind it."""

HOUR_TWICE = r"\d{1,2}(?:(?<=[1-3])[AB])?"
"""An hour. In autumn, the two passes of a repeated hour may be 2A and 2B. The letters are ignored, because
the order of the rows decides."""

_PARTS = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d\d)",
    "%m": r"(?P<m>1[0-2]|0?[1-9])",
    "%d": r"(?P<d>3[01]|[12]\d|0?[1-9])",
    "%j": r"(?P<j>\d{1,3}(?:\.\d{1,12})?)",
    "%G": r"(?P<G>\d{4})",
    "%V": r"(?P<V>5[0-3]|[0-4]?\d)",
    "%u": r"(?P<u>[1-7])",
    "%H": r"(?P<H>2[0-4]|[01]\d|\d)(?:(?<=[1-3])[AB])?",
    "%I": r"(?P<I>1[0-2]|0?[1-9])",
    "%M": r"(?P<M>[0-5]\d|\d)",
    "%q": r"(?P<q>[1-4])",
    "%S": r"(?P<S>[0-5]\d|\d)",
    "%f": r"(?P<f>\d{1,9})",
    "%p": r"(?P<p>[AaPp](?:\.? ?[Mm]\.?)?)",
    "%b": r"(?P<b>[^\W\d_]{3,12})\.?",
    "%z": OFFSET,
    "KW": WEEK,
    "Q": QUARTER,
    "%Z": r"(?P<z>" + "|".join(sorted(ABBREVIATIONS, key=len, reverse=True)) + r")",
    "%a": r"[^\W\d_]{2,12}\.?",
    "hhmm": r"(?P<hhmm>\d{1,4})",
    "seconds_of_day": r"(?P<seconds>\d{1,5}(?:\.\d{1,9})?)",
    "milliseconds": r"(?P<ms>\d{1,3})",
    "%%": "%",
}
_PARTS["%B"] = _PARTS["%b"]
_SECOND_WITH_FRACTION = _PARTS["%S"] + r"(?:[.,](?P<f>\d{1,9}))?"
_SINCE = re.compile(r"\{([^{}]{16,32})\} seconds")
_GIVEN = re.compile(r"\{([12]\d{3})(?:-(\d\d)-(\d\d))?\} *")
_TOKENS = re.compile(r"%.|seconds_of_day|milliseconds|hhmm|KW|\s+|[^%\s]", re.DOTALL)
ABOVE, RANGE, RANGE_END, OR = "{above} ", "{range} ", "{range end} ", " | "
_CLOCK = re.compile(r"%[HI]|hhmm|seconds_of_day")
_DATE_PART = re.compile(r"%[YymdbBjGVuq]")
BETWEEN = re.compile(r"\s*(?:[-\u2013\u2014/]|\bbis\b|\bto\b|\.{2,3})\s*")
BETWEEN_MAX = 12

Parsed = tuple[int, bool] | None
"""(microseconds since 1970, whether they count from 1970 in UTC rather than on the zone's clock)."""


@lru_cache(maxsize=256)
def time_reader(time_format: str) -> Callable[[str], Parsed]:
    """Returns a function that reads texts of this format. The function returns None for a text that is no
    such time. Raises ValueError, which says what is wrong with the format."""
    if time_format == "iso":
        return _read_iso
    if time_format in _EPOCHS_US:
        return lambda text: _read_count(text, _EPOCHS_US[time_format], 0, utc=True)
    if time_format in _SECONDS_BEFORE_1970:
        begin_s = _SECONDS_BEFORE_1970[time_format]
        return lambda text: _read_count(text, Decimal(1_000_000), begin_s, utc=True)
    if since := _SINCE.fullmatch(time_format):
        return _reader_since(since[1])
    if time_format in _TENTHS_BEFORE_1970:
        offset, in_utc = _TENTHS_BEFORE_1970[time_format], time_format in COUNTED_IN_UTC
        return lambda text: _read_count(text, Decimal("0.1"), offset, utc=in_utc)
    if time_format in _DAYS_BEFORE_1970:
        return lambda text: _read_days(text, _DAYS_BEFORE_1970[time_format])
    if time_format.startswith(ABOVE):
        return _reader_below_dates(time_format.removeprefix(ABOVE))
    if OR in time_format and not time_format.startswith("{"):
        return _one_of([time_reader(each) for each in time_format.split(OR)])
    year, date = year_of(time_format), date_of(time_format)
    bare = without_given(time_format)
    if bare.startswith((RANGE, RANGE_END)):
        given = time_format.removesuffix(bare)
        return _reader_of_ranges(bare, lambda each: time_reader(given + each))
    return _pattern_reader(bare, year, date)


def is_count(time_format: str) -> bool:
    """Returns whether the format is one of numbers, which may have a decimal comma."""
    return time_format in COUNTED or _SINCE.fullmatch(time_format) is not None


def _reader_since(begin: str) -> Callable[[str], Parsed]:
    first = _read_iso(begin)
    if first is None:
        raise ValueError(f"{begin} is no time such as 2024-05-01 10:20:30")
    begin_us, in_utc = first

    def read(text: str) -> Parsed:
        found = _read_count(text, Decimal(1_000_000), 0, utc=in_utc)
        return None if found is None else (begin_us + found[0], in_utc)

    return read


def _pattern_reader(
    time_format: str, year: int | None, date: tuple[int, int, int] | None
) -> Callable[[str], Parsed]:
    pattern = _compiled(time_format, year is not None, date is not None)
    return lambda text: _read_pattern(text, pattern, year, date)


def _one_of(readers: Sequence[Callable[[str], Parsed]]) -> Callable[[str], Parsed]:
    return lambda text: next((found for read in readers if (found := read(text)) is not None), None)


def clock_of(time_format: str) -> str:
    """Returns the time of day in a format, or "" if it has none, or if a part of the date comes after it."""
    if time_format == "iso":
        return f"%H:%M:%S{OR}%H:%M"
    found = _CLOCK.search(time_format)
    clock = time_format[found.start() :] if found is not None else ""
    return "" if _DATE_PART.search(clock) else clock


def _reader_below_dates(time_format: str) -> Callable[[str], Parsed]:
    """Returns a function that reads times with a date, and times without a date, which get the first day of
    the year 1."""
    read, clock = time_reader(time_format), clock_of(time_format)
    if not clock:
        return lambda text: read(text) if text.strip() else (_YEAR_1_US, False)
    mark = next((each for each in (RANGE, RANGE_END) if time_format.startswith(each)), "")
    of_day = _reader_of_ranges(mark + clock, _clock_reader) if mark else _clock_reader(clock)
    return _one_of([read, of_day])


def _clock_reader(clock: str) -> Callable[[str], Parsed]:
    return _one_of([_pattern_reader(each, None, (1, 1, 1)) for each in clock.split(OR)])


def _reader_of_ranges(
    time_format: str, reader: Callable[[str], Callable[[str], Parsed]]
) -> Callable[[str], Parsed]:
    """Returns a function that reads the beginning or the end of a range. The second half of a range may have
    no date. `reader` returns the reader for one of the two times."""
    ends = time_format.startswith(RANGE_END)
    bare = time_format.removeprefix(RANGE).removeprefix(RANGE_END)
    read, clock = reader(bare), clock_of(bare)
    of_day = _clock_reader(clock) if clock else read

    def both(text: str) -> Parsed:
        if len(text) > 2 * TEXT_MAX:
            return None
        for middle in islice(BETWEEN.finditer(text), BETWEEN_MAX):
            begin, behind = read(text[: middle.start()]), text[middle.end() :]
            if begin is None:
                continue
            end = read(behind)
            if end is None and (time := of_day(behind)) is not None:
                end = (begin[0] // DAY_US * DAY_US + time[0] - _YEAR_1_US, begin[1])
            if end is not None:
                end = end if end[0] > begin[0] else (end[0] + DAY_US, end[1])
                return end if ends else begin
        return None

    return both


def year_of(time_format: str) -> int | None:
    """Returns the year that a format adds to times without a year, or None."""
    found = _GIVEN.match(time_format)
    return None if found is None or found[2] else int(found[1])


def date_of(time_format: str) -> tuple[int, int, int] | None:
    """Returns the year, month and day that a format adds to times of day, or None."""
    found = _GIVEN.match(time_format)
    return (int(found[1]), int(found[2]), int(found[3])) if found is not None and found[2] else None


def without_given(time_format: str) -> str:
    """Returns the format without the year or the date that it adds."""
    return _GIVEN.sub("", time_format)


def _compiled(time_format: str, year_given: bool, date_given: bool) -> re.Pattern[str]:
    tokens = _TOKENS.findall(time_format.strip())
    fraction_apart = "%f" in tokens
    parts = []
    for part in tokens:
        if part.isspace():
            parts.append(r"\s+")
        elif part == "%H" and date_given:
            parts.append(r"(?P<H>\d{1,4})(?:(?<=[1-3])[AB])?")  # hours may exceed 24: 29:30:00
        elif part == "%S" and not fraction_apart:
            parts.append(_SECOND_WITH_FRACTION)
        elif part in _PARTS:
            parts.append(_PARTS[part])
        elif part.startswith("%"):
            raise ValueError(f"{part} is no part of a time that Fogline knows")
        else:
            parts.append(re.escape(part))
    try:
        own = re.IGNORECASE if {"%a", "%b", "%B"} & set(tokens) else re.ASCII | re.IGNORECASE
        pattern = re.compile("".join(parts), own)
    except re.error as error:
        raise ValueError("a time format may contain each part only once") from error
    names = pattern.groupindex
    dated = "Y" in names or ((year_given or "y" in names) and names.keys() & {"j", "m", "b", "q"})
    if date_given and not {"H", "I", "hhmm", "seconds"} & names.keys():
        raise ValueError("a time format with a date before it needs a time of day")
    if not date_given and not dated and not ("G" in names and "V" in names):
        raise ValueError("a time format needs a year of four digits, or a year and a month")
    return pattern


def _read_count(text: str, unit_us: Decimal, offset: int | Decimal, utc: bool) -> Parsed:
    text = in_ascii(text).strip()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        micros = int(((Decimal(text) - offset) * unit_us).to_integral_value())
    except (InvalidOperation, OverflowError):
        return None
    return (micros, utc) if _YEAR_1_US <= micros < _YEAR_10000_US else None


def _read_days(text: str, days_before_1970: Decimal) -> Parsed:
    """Rounds to the millisecond, because a day with nine decimals, as programs write it, is only exact to 86
    us."""
    found = _read_count(text, Decimal(DAY_US) / 1000, days_before_1970, utc=False)
    return None if found is None else (found[0] * 1000, False)


def _read_iso(text: str) -> Parsed:
    found = _ISO.fullmatch(unwrapped(text))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    clock = _clock_us(int(hour or 0), int(minute or 0), int(second or 0), fraction)
    return _joined(int(year), int(month), int(day), clock, zone)


def _read_pattern(
    text: str, pattern: re.Pattern[str], year_given: int | None, date_given: tuple[int, int, int] | None
) -> Parsed:
    if len(text) > TEXT_MAX:
        return None
    found = pattern.fullmatch(unwrapped(text))
    if found is None:
        return None
    said = found.groupdict()
    date = date_given or _date(said, year_given)
    hour = int(said.get("H") or 0)
    if said.get("I"):
        if not said.get("p"):
            return None
        hour = int(said["I"]) % 12 + (12 if said["p"][0] in "pP" else 0)
    days_on, hour = divmod(hour, 24) if date_given else (0, hour)
    clock = _clock_us(hour, int(said.get("M") or 0), int(said.get("S") or 0), said.get("f"))
    if said.get("hhmm"):
        clock = _clock_us(int(said["hhmm"]) // 100, int(said["hhmm"]) % 100, 0, None)
    if clock is not None and said.get("ms"):
        clock += int(said["ms"] or 0) * 1000
    if said.get("seconds"):
        clock = int(Decimal(said["seconds"]) * 1_000_000)
        clock = clock if clock <= DAY_US else None
    if clock is not None and said.get("j"):
        days = Decimal(said["j"]) - 1
        if not 0 <= days < 366 or (clock and days % 1):
            return None
        clock += int((days * DAY_US).to_integral_value())
    if clock is not None:
        clock += days_on * DAY_US
    return None if date is None else _joined(*date, clock, said.get("z"))


def _date(said: dict[str, str | None], year_given: int | None) -> tuple[int, int, int] | None:
    """Returns (year, month, day) of the parts that a text has."""
    if (week_year := said.get("G")) and (week := said.get("V")):
        try:
            monday = datetime.fromisocalendar(int(week_year), int(week), int(said.get("u") or 1))
        except ValueError:
            return None
        return monday.year, monday.month, monday.day
    year = int(said["Y"] or 0) if said.get("Y") else year_given or _century(int(said.get("y") or 0))
    named = said.get("b")
    month = MONTHS.get(named.lower(), 0) if named else int(said.get("m") or 1)
    if said.get("q"):
        month = 3 * int(said["q"] or 1) - 2
    return year, month, int(said.get("d") or 1)


def _century(year: int) -> int:
    """Returns the year of two digits, as in Python and POSIX: 69 to 99 belong to the last century."""
    return year + (1900 if year >= 69 else 2000)


def _clock_us(hour: int, minute: int, second: int, fraction: str | None) -> int | None:
    if hour > 24 or minute > 59 or second > 59:
        return None
    micros = (hour * 3600 + minute * 60 + second) * 1_000_000 + int((fraction or "0").ljust(6, "0")[:6])
    return micros if micros < DAY_US or (hour == 24 and micros == DAY_US) else None


def _joined(year: int, month: int, day: int, clock_us: int | None, zone: str | None) -> Parsed:
    if clock_us is None:
        return None
    try:
        days = (datetime(year, month, day) - _EPOCH).days  # noqa: DTZ001  a date alone
    except ValueError:
        return None
    offset = _offset_us(zone)
    return None if offset is None else (days * DAY_US + clock_us - offset, zone is not None)


def _offset_us(zone: str | None) -> int | None:
    if zone is None or zone in "Zz":
        return 0
    if zone.upper() in ABBREVIATIONS:
        return ABBREVIATIONS[zone.upper()] * 3_600_000_000
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    if hours > 18 or minutes > 59:
        return None
    return (hours * 60 + minutes) * 60_000_000 * (-1 if zone[0] == "-" else 1)


def moment(micros: int) -> str:
    """Returns microseconds since 1970 as ISO 8601 in UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat()
