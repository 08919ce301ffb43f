"""How text says when: the formats that a column of times may have, and which one it has."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

ISO_PATTERN = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$"
NUMBER_PATTERN = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$"
_TIMESTAMP = pa.timestamp("us", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCHS_US = {"epoch_s": 1e6, "epoch_ms": 1e3, "epoch_us": 1.0, "epoch_ns": 1e-3}
"""Formats that count from 1970 on: microseconds of one of their units."""
_YEAR_1_US, _YEAR_10000_US = -62_135_596_800e6, 253_402_300_800e6

_WORDS = {
    "iso": "ISO 8601",
    "epoch_s": "seconds since 1970",
    "epoch_ms": "milliseconds since 1970",
    "epoch_us": "microseconds since 1970",
    "epoch_ns": "nanoseconds since 1970",
}
_DIRECTIVES = {
    "%d": "day",
    "%m": "month",
    "%b": "month's name",
    "%Y": "year",
    "%y": "year",
    "%H": "hour",
    "%I": "hour",
    "%M": "minute",
    "%S": "second",
    "%f": "fraction",
    "%p": "am/pm",
    "%z": "zone",
}

SAMPLE_ROWS = 400
READABLE_MIN = 0.9
"""The share of a column's values that a format must read to be the column's."""
BACK_MAX = 0.1
"""The share of a column's rows that may go back in time when it is chosen without asking."""
_COUNTS_FROM_S, _COUNTS_TO_S = 631_152_000, 4_102_444_800  # 1990 to 2100
_TIME_NAME = re.compile(
    r"(?i)(^|[^a-z])(t|ts|at|time|date|when|utc|epoch|unix|zeit|datum)([^a-z]|$)|time|stamp"
)
_ELAPSED_NAME = re.compile(
    r"(?i)^(t|time|elapsed|uptime|seconds?|secs?|s|millis|milliseconds|ms)?"
    r"[ _(\[]*(s|sec|seconds|ms|us|ns)?[)\]]?$"
)
_ELAPSED_UNITS = {
    "ms": "epoch_ms",
    "millis": "epoch_ms",
    "milliseconds": "epoch_ms",
    "us": "epoch_us",
    "ns": "epoch_ns",
}

# What a date may look like: its form, and the formats that it may mean, the likelier one first.
_DATES = (
    (r"\d{4}-\d{1,2}-\d{1,2}", ("%Y-%m-%d",)),
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", ("%Y.%m.%d",)),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", ("%d.%m.%Y",)),
    (r"\d{1,2}\.\d{1,2}\.\d{2}", ("%d.%m.%y",)),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%m/%d/%Y", "%d/%m/%Y")),
    (r"\d{1,2}/\d{1,2}/\d{2}", ("%m/%d/%y", "%d/%m/%y")),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y", "%m-%d-%Y")),
    (r"\d{1,2} [A-Za-z]{3} \d{4}", ("%d %b %Y",)),
    (r"\d{1,2}-[A-Za-z]{3}-\d{4}", ("%d-%b-%Y",)),
    (r"\d{1,2}/[A-Za-z]{3}/\d{4}", ("%d/%b/%Y",)),
    (r"[A-Za-z]{3} \d{1,2}, \d{4}", ("%b %d, %Y",)),
    (r"\d{8}", ("%Y%m%d",)),
)
_CLOCKS = (
    (r"\d{1,2}:\d\d:\d\d\.\d{1,6}", "%H:%M:%S.%f"),
    (r"\d{1,2}:\d\d:\d\d,\d{1,6}", "%H:%M:%S,%f"),
    (r"\d{1,2}:\d\d:\d\d", "%H:%M:%S"),
    (r"\d{1,2}:\d\d", "%H:%M"),
    (r"\d{1,2}:\d\d:\d\d [AaPp][Mm]", "%I:%M:%S %p"),
    (r"\d{1,2}:\d\d [AaPp][Mm]", "%I:%M %p"),
    (r"\d{6}", "%H%M%S"),
)
_BETWEEN = (" ", "T", ", ", ":", "")
_ZONES = (
    ("", ""),
    (r"(?:Z|[+-]\d\d:?\d\d)", "%z"),
    (r" (?:Z|[+-]\d\d:?\d\d)", " %z"),
    (" UTC", " UTC"),
    (" GMT", " GMT"),
)


# --- reading ------------------------------------------------------------------------------------
def read_times(text: pa.Array, time_format: str) -> pa.Array:
    """Texts as times in UTC; null where a text is none. `time_format`: iso, one that counts from 1970
    (epoch_s, epoch_ms, epoch_us, epoch_ns), or a strptime format. Without a zone a time is UTC."""
    if time_format == "iso":
        return read_iso(_only(text, ISO_PATTERN))
    if time_format in _EPOCHS_US:
        return _read_epoch(_only(text, NUMBER_PATTERN), _EPOCHS_US[time_format])
    return pa.array([_strptime_or_none(value, time_format) for value in text.to_pylist()], _TIMESTAMP)


def _only(text: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(text, pattern), text, pa.scalar(None, pa.string()))


def _read_epoch(text: pa.Array, unit_us: float) -> pa.Array:
    micros = pc.multiply(pc.cast(pc.replace_substring_regex(text, r"^\+", ""), pa.float64()), unit_us)
    # Beyond the calendar's years there is no time, and beyond 64 bits no number.
    known = pc.and_(pc.greater_equal(micros, _YEAR_1_US), pc.less(micros, _YEAR_10000_US))
    micros = pc.if_else(known, micros, pa.scalar(None, pa.float64()))
    return pc.cast(pc.cast(pc.round(micros), pa.int64()), _TIMESTAMP)


def read_iso(text: pa.Array) -> pa.Array:
    """Texts of ISO_PATTERN to UTC. Impossible dates become null."""
    zoned = pc.match_substring_regex(text, r"(Z|[+-]\d\d:?\d\d)$")
    # A bare date ends in -dd as well: a zone needs a time of day before it.
    zoned = pc.and_(zoned, pc.match_substring_regex(text, r"[T ]\d\d:"))
    with_zone = pc.if_else(zoned, text, pc.binary_join_element_wise(_with_clock(text), "Z", ""))
    try:
        fine = pc.cast(with_zone, pa.timestamp("ns", "UTC"))
        return pc.cast(fine, _TIMESTAMP, safe=False)
    except pa.ArrowInvalid:
        # Some value has the form of a date and is none (or is outside the range of nanoseconds).
        return pa.array([_iso_or_none(value) for value in with_zone.to_pylist()], _TIMESTAMP)


def _with_clock(text: pa.Array) -> pa.Array:
    bare = pc.equal(pc.utf8_length(text), 10)
    return pc.if_else(bare, pc.binary_join_element_wise(text, "T00:00:00", ""), text)


def _iso_or_none(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _strptime_or_none(text: str | None, time_format: str) -> datetime | None:
    if text is None:
        return None
    try:
        value = datetime.strptime(text, time_format)  # noqa: DTZ007  the zone is set below
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def checked_format(time_format: str) -> str:
    """It, when texts can be read by it; ValueError: no text ever could."""
    if time_format != "iso" and time_format not in _EPOCHS_US:
        try:
            datetime.strptime("", time_format)  # noqa: DTZ007  only the format is looked at
        except re.error as error:
            raise ValueError(f"a time format may contain each part only once ({error})") from error
        except ValueError as error:
            if "does not match format" not in str(error):
                raise ValueError(f"it is not a time format ({error})") from error
    return time_format


# --- finding ------------------------------------------------------------------------------------
class TimeReading(BaseModel):
    """A format in which a column can be read as times, and what it then says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str  # what `time_format` takes
    words: str  # the same for people: "day.month.year hour:minute"
    zone: Literal["written", "assumed"]  # assumed: UTC
    first: str  # ISO 8601, of the first row that has one
    step_s: float | None  # usual time from a row to the next
    rows: int  # values that were looked at
    unread: int  # of them, values that are no time in this format
    back: int  # rows whose time is before that of the row before
    same: int  # rows with the time of the row before
    elapsed: bool = False  # it counts from a start of its own, not from 1970

    @property
    def chosen_unasked(self) -> bool:
        """Whether rows can be replayed by it: a file from new to old, or of one day, cannot."""
        return self.step_s is not None and self.back <= BACK_MAX * self.rows


def in_words(time_format: str) -> str:
    """'%d.%m.%Y %H:%M' -> 'day.month.year hour:minute'."""
    known = _WORDS.get(time_format)
    return known or re.sub(r"%[A-Za-z]", lambda found: _DIRECTIVES.get(found[0], found[0]), time_format)


def time_readings(name: str, values: Sequence[str]) -> list[TimeReading]:
    """In which formats a column called `name` can be times, the likeliest first; [] when it is none.
    `values`: its cells in the file's order, of which empty ones say nothing."""
    given = [text for value in values[:SAMPLE_ROWS] if (text := value.strip())]
    if not given:
        return []
    readings = [_judged(name, given, time_format) for time_format in _formats(name, given)]
    found = [reading for reading in readings if reading is not None]
    # The best reading leaves fewest unread, then goes back least, then makes the shortest steps.
    return sorted(found, key=lambda it: (it.unread, it.back, it.step_s or math.inf))


def best_time(columns: Sequence[tuple[str, Sequence[TimeReading]]]) -> tuple[str, str] | None:
    """Returns (column, format) to replay by, or None if no column will do. `columns` holds (name, its
    readings) in the file's order."""
    fit = []
    for index, (name, readings) in enumerate(columns):
        if readings and readings[0].chosen_unasked:
            first = readings[0]
            rank = (not _TIME_NAME.search(name), first.elapsed, 2 * first.same > first.rows, index)
            fit.append((rank, name, first.format))
    return min(fit)[1:] if fit else None


def _formats(name: str, given: Sequence[str]) -> list[str]:
    """Those that the first values look like."""
    if all(re.match(NUMBER_PATTERN, value) for value in given[:20]):
        return _number_formats(name, given)
    found: dict[str, None] = {}
    for value in given[:20]:
        if re.match(ISO_PATTERN, value):
            found["iso"] = None
        elif len(value) <= 40:
            found |= dict.fromkeys(_shaped(value))
    return list(found)


def _number_formats(name: str, given: Sequence[str]) -> list[str]:
    middle = median(float(value) for value in given if re.match(NUMBER_PATTERN, value))
    for time_format, unit_us in _EPOCHS_US.items():
        if _COUNTS_FROM_S <= middle * unit_us / 1e6 < _COUNTS_TO_S:
            return [time_format]
    if re.match(r"^(19|20)\d{6}$", given[0]) and _TIME_NAME.search(name):
        return ["%Y%m%d"]
    called = _ELAPSED_NAME.match(name)
    said = (called[2] or called[1] or "").lower() if called else ""
    return [_ELAPSED_UNITS.get(said, "epoch_s")] if said and middle >= 0 else []


def _shaped(value: str) -> list[str]:
    """The strptime formats of a text that has a date or a time of day, or both."""
    found = []
    for zone_form, zone in _ZONES:
        for clock_form, clock in _CLOCKS:
            if clock != "%H%M%S" and re.fullmatch(clock_form + zone_form, value):
                found.append(clock + zone)
        for date_form, dates in _DATES:
            rest = re.match(date_form, value)
            if rest is None:
                continue
            if not zone and rest.end() == len(value) and dates != ("%Y%m%d",):
                found += dates
            for clock_form, clock in _CLOCKS:
                for between in _BETWEEN:
                    if re.fullmatch(re.escape(between) + clock_form + zone_form, value[rest.end() :]):
                        found += [date + between + clock + zone for date in dates]
    return found


def _judged(name: str, given: Sequence[str], time_format: str) -> TimeReading | None:
    times = read_times(pa.array(given, pa.string()), time_format)
    micros = np.asarray(pc.cast(times.drop_null(), pa.int64()).to_numpy())
    if len(micros) < READABLE_MIN * len(given):
        return None
    steps = np.diff(micros)
    forward = steps[steps > 0]
    back = int((steps < 0).sum())
    number = time_format in _EPOCHS_US
    elapsed = number and abs(float(micros[len(micros) // 2])) < _COUNTS_FROM_S * 1e6
    # A number is a time only if it behaves like one, or is called so: an id may be as large.
    if number and (elapsed or not _TIME_NAME.search(name)) and (back > 0 or not len(forward)):
        return None
    return TimeReading(
        format=time_format,
        words=in_words(time_format).replace("since 1970", "since the start")
        if elapsed
        else in_words(time_format),
        zone="written" if _has_zone(given[0], time_format) else "assumed",
        first=(_EPOCH + timedelta(microseconds=int(micros[0]))).isoformat(),
        step_s=float(np.median(forward)) / 1e6 if len(forward) else None,
        rows=len(given),
        unread=len(given) - len(micros),
        back=back,
        same=int((steps == 0).sum()),
        elapsed=elapsed,
    )


def _has_zone(value: str, time_format: str) -> bool:
    if time_format == "iso":
        return re.search(r":\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$", value) is not None
    return time_format in _EPOCHS_US or time_format.endswith(("%z", "UTC", "GMT"))
