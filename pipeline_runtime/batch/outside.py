"""Reads the records of a topic that others write, as the element's parameters say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite, isnan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_runtime.batch.decode import Reject, arrow_schema, decode, foreign_reason
from pipeline_runtime.model.paths import value_at
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading, TimeReading

_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_LAST_US = 253_402_300_800_000_000  # the year 10,000
_UNIT_US = {"s": 1_000_000.0, "ms": 1000.0, "us": 1.0, "ns": 0.001}
_KINDS = {
    dict: "an object",
    list: "an array",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Unreadable(ValueError):
    """A record, or one of its rows, that is not as the parameters say. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Read:
    """The rows of some records."""

    columns: pa.Table
    places: NDArray[np.int64]  # of each row: the place of its record among those that were read
    times_us: NDArray[np.int64]
    rejects: tuple[Reject, ...]

    def between(self, first: int, last: int) -> Read:
        """Returns what is in the records from the place `first` to before `last`, which count from 0 then."""
        begin, end = np.searchsorted(self.places, (first, last)).tolist()
        return Read(
            self.columns.slice(begin, end - begin),
            self.places[begin:end] - first,
            self.times_us[begin:end],
            tuple(
                Reject(reject.index - first, reject.reason)
                for reject in self.rejects
                if first <= reject.index < last
            ),
        )


_TIMESTAMP_MS_MAX = (2**63 - 1) // 1000
"""The largest number of milliseconds that is less than 64 bits of microseconds."""


def read_outside(
    values: pa.BinaryArray,
    timestamps_ms: NDArray[np.int64],
    schema: StreamSchema,
    reading: RecordReading,
) -> Read:
    """Returns the rows of the records, in their order. What cannot be read is rejected, each row for
    itself. A timestamp that microseconds cannot hold becomes the nearest one that they can hold."""
    timestamps_ms = np.clip(timestamps_ms, -_TIMESTAMP_MS_MAX, _TIMESTAMP_MS_MAX)
    if reading.is_plain:
        return _plain(values, timestamps_ms, schema, reading)
    return _mapped(values.to_pylist(), timestamps_ms, schema, reading)


def _plain(
    values: pa.BinaryArray,
    timestamps_ms: NDArray[np.int64],
    schema: StreamSchema,
    reading: RecordReading,
) -> Read:
    """Each record is one row of fields that have the columns' types: Arrow reads them 20 times as fast."""
    fields = zip(schema.fields, reading.columns, strict=True)
    as_written = StreamSchema(fields=tuple(Field(name=str(c.path[0]), type=f.type) for f, c in fields))

    def rescue(value: bytes) -> dict[str, Any]:
        [row] = _rows_of(value, schema, reading)
        return dict(zip(as_written.names, row, strict=True))

    decoded = decode(values, as_written, rescue)
    places = np.arange(len(values)) if decoded.kept is None else np.array(decoded.kept, np.int64)
    columns = decoded.columns.rename_columns(list(schema.names))
    return Read(columns, places, timestamps_ms[places] * 1000, decoded.rejects)


def _mapped(
    values: Sequence[bytes | None],
    timestamps_ms: NDArray[np.int64],
    schema: StreamSchema,
    reading: RecordReading,
) -> Read:
    rows: list[list[Any]] = []
    places: list[int] = []
    times_us: list[int] = []
    rejects: list[Reject] = []
    for place, value in enumerate(values):
        try:
            whole = _parsed(value)
            items = _items(whole, reading)
        except _Unreadable as error:
            rejects.append(Reject(place, str(error)))
            continue
        for number, item in enumerate(items):
            try:
                row = _row(item, whole, schema, reading)
                at_us = int(timestamps_ms[place]) * 1000
                if reading.time is not None:
                    at_us = _time_us(value_at(item, whole, reading.time.path), reading.time)
            except _Unreadable as error:
                which = f"row {number + 1}: " if reading.rows is not None else ""
                rejects.append(Reject(place, f"{which}{error}"))
                continue
            rows.append(row)
            places.append(place)
            times_us.append(at_us)
    target = arrow_schema(schema)
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in target]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, target, strict=True)], schema=target)
    return Read(table, np.array(places, np.int64), np.array(times_us, np.int64), tuple(rejects))


def not_far_ahead(read: Read, reading: RecordReading, batch_time_ms: int) -> Read:
    """Returns the rows without those whose time lies further ahead of their arrival than the parameters
    allow, or with the arrival as their time. `batch_time_ms` stands for the arrival."""
    limit_us = batch_time_ms * 1000 + round(reading.ahead_s * 1_000_000)
    is_far = read.times_us > limit_us
    if not is_far.any():
        return read
    if reading.ahead == "arrival":
        times = np.where(is_far, batch_time_ms * 1000, read.times_us)
        return Read(read.columns, read.places, times, read.rejects)
    far = [
        Reject(
            int(place),
            f"its time, {_text_of(us)}, is more than {reading.ahead_s:g} s after its arrival: it would"
            " make all rows before it late",
        )
        for place, us in zip(read.places[is_far], read.times_us[is_far].tolist(), strict=True)
    ]
    near = ~is_far
    rejects = tuple(sorted([*read.rejects, *far], key=lambda reject: reject.index))
    return Read(read.columns.filter(pa.array(near)), read.places[near], read.times_us[near], rejects)


def _text_of(us: int) -> str:
    return str(np.datetime64(us, "us"))[:23] + "Z"


def _rows_of(value: bytes, schema: StreamSchema, reading: RecordReading) -> list[list[Any]]:
    whole = _parsed(value)
    return [_row(item, whole, schema, reading) for item in _items(whole, reading)]


def _parsed(value: bytes | None) -> Any:
    reason = foreign_reason(value)
    if reason is not None:
        raise _Unreadable(reason)
    assert value is not None
    try:
        return json.loads(value.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise _Unreadable(f"the record is not UTF-8 text: {error.reason}") from error
    except RecursionError as error:
        raise _Unreadable("the record is nested too deeply") from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise _Unreadable("there is more than one JSON value in the record") from error
        raise _Unreadable(f"the record is not JSON: {error.msg} at character {error.pos}") from error
    except ValueError as error:
        raise _Unreadable(str(error)) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Unreadable(f'the record has the field "{twice}" twice')
    return found


def _constant(text: str) -> float | None:
    """Python, and others after it, write NaN for no value. Infinity is a value, which no row can have."""
    return None if text == "NaN" else float(text)


def _items(whole: Any, reading: RecordReading) -> list[Any]:
    """The record's rows, as they are written."""
    if reading.rows is None:
        if not isinstance(whole, dict):
            raise _Unreadable("the record is not a JSON object")
        return [whole]
    items = value_at(whole, whole, reading.rows) if reading.rows else whole
    if not isinstance(items, list):
        raise _Unreadable("there is no array of rows where the parameter rows says")
    return items


def _row(item: Any, whole: Any, schema: StreamSchema, reading: RecordReading) -> list[Any]:
    return [
        _cell(value_at(item, whole, column.path), field, column)
        for field, column in zip(schema.fields, reading.columns, strict=True)
    ]


def _cell(found: Any, field: Field, column: ColumnReading) -> Any:
    if found is None or (isinstance(found, float) and isnan(found)):
        return None
    if column.quoted and isinstance(found, str) and field.type is not FieldType.STRING:
        found = _unquoted(found.strip(), field)
    match field.type:
        case FieldType.INTEGER if type(found) is int and _INTEGER_MIN <= found <= _INTEGER_MAX:
            return found
        case FieldType.NUMBER if type(found) in (int, float):
            number = _float(found)
            if number is not None:
                return number
        case FieldType.STRING if isinstance(found, str) and _is_text(found):
            return found
        case FieldType.BOOLEAN if isinstance(found, bool):
            return found
        case FieldType.TIMESTAMP if isinstance(found, str):
            return _moment(found, field.name)
    if found is None:
        return None
    kind = ""
    if type(found) in (int, float) and field.type in _NUMERIC:
        has_decimals = field.type is FieldType.INTEGER and type(found) is float
        kind = "a number with decimals" if has_decimals else "a number that no row can hold"
    kind = kind or _KINDS.get(type(found), type(found).__name__)
    raise _Unreadable(f'its field for the column "{field.name}" is {kind}, but {field.type.words} is needed')


_NUMERIC = (FieldType.INTEGER, FieldType.NUMBER)


def _unquoted(text: str, field: Field) -> Any:
    """What a text says, where the user has asked for that; the text itself if it says nothing of the kind."""
    if text.lower() in ("", "nan", "null"):
        return None
    try:
        if field.type is FieldType.INTEGER:
            return int(text)
        if field.type is FieldType.NUMBER:
            return float(text)
    except ValueError:
        return text
    if field.type is FieldType.BOOLEAN:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


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


def _moment(text: str, name: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise _Unreadable(f'its field for the column "{name}" is no time: {text[:60]}') from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _time_us(found: Any, time: TimeReading) -> int:
    """The event time that a row says, in us since 1970."""
    if found is None:
        raise _Unreadable("it has no event time: the field that holds it is missing or null")
    if time.format == "iso":
        if not isinstance(found, str):
            raise _Unreadable(f"its event time is {_KINDS.get(type(found), 'no text')}, but text is needed")
        since = _moment(found, "event time") - _EPOCH
        us = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    else:
        number = _unquoted(found.strip(), _COUNTED) if isinstance(found, str) else found
        if type(number) not in (int, float) or not isfinite(number):
            raise _Unreadable("its event time is no number")
        us = round(number * _UNIT_US[time.format])
    if not 0 <= us < _LAST_US:
        raise _Unreadable("its event time is not between the years 1970 and 9999: is its unit right?")
    return us


_COUNTED = Field(name="event time", type=FieldType.NUMBER)
