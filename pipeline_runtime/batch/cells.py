"""Turns the JSON values of users' topics into the values of columns and event times."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, isnan
from typing import Any
from uuid import UUID

from pipeline_runtime.model.plain_data import shown
from pipeline_runtime.model.schema import Field, FieldType
from pipeline_runtime.model.spec import ColumnReading, TimeReading

_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_LAST_US = 253_402_300_800_000_000  # the year 10,000
_UNIT_US = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_EXACT_END = 2**53  # below it, a whole number with a point is exactly as it is written
_NUMBER = re.compile(r"[+-]?(\d+)?(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_EXPONENT_DIGITS_MAX = 12


class Rounded(float):
    """A whole number of which the text has decimals: a number keeps fewer digits."""


KINDS = {
    dict: "an object",
    list: "an array",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    Rounded: "a number",
    type(None): "null",
    datetime: "a time",
    date: "a date",
    time: "a time of day",
    Decimal: "a number",
    UUID: "a UUID",
    bytes: "bytes",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_US = timedelta(microseconds=1)
_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d(?:-?\d)?)"
    r"(?:[Tt ](?P<clock>\d\d(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,]\d+)?)?)?)"
    r" ?(?P<zone>[zZ]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
"""A time in ISO 8601. Python's own reader takes any character between day and clock, so digits that count
milliseconds, and the zone of a bare day, would be times of day."""
_ZONES = {None: "", "z": "Z", "UTC": "Z", "GMT": "Z"}  # others are as Python reads them
_MIDNIGHT = re.compile(r"24(?::?00(?::?00(?:[.,]0*)?)?)?")  # the one at the end of the day
_NUMERIC = (FieldType.INTEGER, FieldType.NUMBER)


class Unreadable(ValueError):
    """A record, or one of its rows, that is not as the parameters say. The message is the reason."""


def cell(found: Any, field: Field, column: ColumnReading) -> Any:
    if found is None or (isinstance(found, float) and isnan(found)):
        return None
    if column.quoted and isinstance(found, str) and field.type is not FieldType.STRING:
        found = _unquoted(found.strip(), field.type)
    if isinstance(found, Rounded) and field.type is FieldType.NUMBER:
        found = float(found)
    elif isinstance(found, _TYPED):
        found = _plain(found, field.type)
    match field.type:
        case FieldType.INTEGER if type(found) in (int, float):
            whole = _integer(found)
            if whole is not None:
                return whole
        case FieldType.NUMBER if type(found) in (int, float):
            number = _float(found)
            if number is not None:
                return number
        case FieldType.STRING if isinstance(found, str) and _is_text(found):
            return found
        case FieldType.BOOLEAN if isinstance(found, bool):
            return found
        case FieldType.TIMESTAMP if isinstance(found, str):
            return _moment(found, f'its field for the column "{field.name}"')
        case FieldType.TIMESTAMP if isinstance(found, datetime):
            return found
    if found is None:
        return None
    raise Unreadable(_misfit(found, field, column))


_TYPED = (date, time, Decimal, UUID)
"""Values that JSON does not have, but other formats do. A datetime is a date."""


def _plain(found: Any, type_: FieldType) -> Any:
    """Returns what a value that JSON does not have is in a column of this type, or the value itself if it is
    nothing there."""
    if isinstance(found, Decimal):
        if type_ is FieldType.STRING:
            return format(found, "f")
        if type_ is FieldType.INTEGER and found.is_finite() and found == found.to_integral_value():
            return int(found)
        return float(found) if type_ is FieldType.NUMBER else found
    if type_ is FieldType.STRING:
        return str(found) if isinstance(found, UUID) else found.isoformat().replace("+00:00", "Z")
    if type_ is FieldType.TIMESTAMP and isinstance(found, date):
        at = found if isinstance(found, datetime) else datetime.combine(found, time(), UTC)
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return found


def _misfit(found: Any, field: Field, column: ColumnReading) -> str:
    """Why a value does not fit its column."""
    kind, hint = KINDS.get(type(found), type(found).__name__), ""
    if isinstance(found, str):
        if not _is_text(found):
            kind = "text with half of a character (a lone surrogate)"
        elif field.type is not FieldType.STRING:
            kind = f'the text "{shown(found)}"'
            says_it = not column.quoted and not isinstance(_unquoted(found.strip(), field.type), str)
            hint = ". Tick that it may be written as text" if says_it else ""
    elif type(found) in (int, float, Rounded) and field.type in _NUMERIC:
        has_decimals = isinstance(found, float) and isfinite(found) and not found.is_integer()
        has_decimals = has_decimals or isinstance(found, Rounded)
        has_decimals = has_decimals and field.type is FieldType.INTEGER
        kind = "a number with decimals" if has_decimals else "a number that no row can hold"
    needed = f"{field.type.words} is needed"
    return f'its field for the column "{field.name}" is {kind}, but {needed}{hint}'


def _unquoted(text: str, type_: FieldType) -> Any:
    """What a text says, where the user has asked for that; the text itself if it says nothing of the kind."""
    if text.lower() in ("", "nan", "null"):
        return None
    if type_ in _NUMERIC:
        return _said_number(text)
    if type_ is FieldType.BOOLEAN:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _said_number(text: str) -> int | float | str:
    """The number that a text says as JSON would write it, or the text. Python's own are more: 1_000 too."""
    if not text or _NUMBER.fullmatch(text) is None:
        return text
    try:
        return int(text) or float(text)  # an integer has no -0
    except ValueError:
        pass
    try:
        return said_float(text)
    except ValueError:
        return text


def said_float(text: str) -> float:
    """Returns the number that a text says, as Rounded if only its digits that are kept are those of a whole
    number."""
    number = float(text)
    return Rounded(number) if number.is_integer() and _has_decimals(text) else number


def _has_decimals(text: str) -> bool:
    """Whether the number that a text says has digits other than 0 behind its point."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, decimals = mantissa.lstrip("+-").partition(".")
    digits = (whole + decimals).rstrip("0")
    zeros_behind = len(whole + decimals) - len(digits)
    shift = int(exponent[:_EXPONENT_DIGITS_MAX] or 0)
    return bool(digits.strip("0")) and len(decimals) - zeros_behind - shift > 0


def _integer(found: float) -> int | None:
    """A whole number may be written as 1.0 or 1e3: many programs know no others."""
    if isinstance(found, float):
        if not found.is_integer() or abs(found) >= _EXACT_END:
            return None
        found = int(found)
    return found if _INTEGER_MIN <= found <= _INTEGER_MAX else None


def _float(found: float) -> float | None:
    try:
        number = float(found)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _is_text(found: str) -> bool:
    try:
        found.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no other program takes
        return False
    return True


def _moment(text: str, what: str) -> datetime:
    """Returns the time in UTC. `what`: what holds it, for the reason why there is none."""
    found = _TIME.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        day, clock, minute, second, zone = found.groups()
        later = None
        if second == "60" and minute == "59":  # a leap second counts as the one behind it
            begin = found.start("second") - found.start("clock")
            clock, later = f"{clock[:begin]}59{clock[begin + 2 :]}", timedelta(seconds=1)
        elif clock is not None and clock[:2] == "24" and _MIDNIGHT.fullmatch(clock):
            clock, later = "00", timedelta(days=1)
        at = datetime.fromisoformat(day if clock is None else f"{day}T{clock}{_ZONES.get(zone, zone)}")
        at = at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return at if later is None else at + later
    except (ValueError, OverflowError) as error:  # the year 1 has no time before it
        raise Unreadable(f"{what} is no time: {shown(text)}") from error


def event_time_us(found: Any, time: TimeReading) -> int:
    """The event time that a row says, in us since 1970."""
    if found is None:
        raise Unreadable("it has no event time: the field that holds it is missing or null")
    if isinstance(found, date):
        at: datetime = _plain(found, FieldType.TIMESTAMP)
        us = (at - _EPOCH) // _ONE_US
    elif time.format == "iso":
        if not isinstance(found, str):
            raise Unreadable(f"its event time is {KINDS.get(type(found), 'no text')}, but text is needed")
        us = (_moment(found, "its event time") - _EPOCH) // _ONE_US
    else:
        us = _counted_us(found, time)
    if not 0 <= us < _LAST_US:
        raise Unreadable("its event time is not between the years 1970 and 9999: is its unit right?")
    return us


def _counted_us(found: Any, time: TimeReading) -> int:
    number = _said_number(found.strip()) if isinstance(found, str) else found
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise Unreadable("its event time is no number")
    times, parts = _UNIT_US[time.format]
    if isinstance(number, int):
        return number * times // parts
    us = number * times / parts
    if not isfinite(us):
        raise Unreadable("its event time is no number")
    return round(us)
