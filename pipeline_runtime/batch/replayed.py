"""Rows that come back to an element: unchanged, or with values that a user has changed. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_runtime.batch.cells import Unreadable, cell, event_time_us
from pipeline_runtime.batch.decode import arrow_schema
from pipeline_runtime.batch.outside import Beside, not_far_ahead, read_outside
from pipeline_runtime.batch.rows import EPOCH
from pipeline_runtime.kafka.json_rows import json_texts
from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.model.dead_letters import WayIn
from pipeline_runtime.model.paths import KEY, value_at
from pipeline_runtime.model.plain_data import data_in, escaped, object_in
from pipeline_runtime.model.schema import Field, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading
from pipeline_runtime.model.texts import texts

AT = "_time"
"""Stands for a row's event time among its cells."""
_SHORTENED = "... ("
"""How a letter goes on where its row was cut."""


class NotReplayed(Exception):
    """The row stays a dead letter. The message says why, as a sentence."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as a record of its stream."""

    value: bytes
    key: bytes | None
    time_ms: int


@dataclass(frozen=True, slots=True)
class Mended:
    """The cells of a row by column, and its event time. None stands for the time that the row had."""

    cells: Mapping[str, Any]
    at: str | None = None


def as_it_was(original: PeekedRecord | None, raw: str, way: WayIn, now_ms: int) -> Row:
    """Returns the row that a letter is about, read again from where it lies. `raw`: what the letter quotes.
    Raises NotReplayed."""
    if original is None:
        raise NotReplayed("The topic no longer has the row. Mend it instead: the letter quotes it.")
    key = None if original.key is None else original.key.encode()
    if way.reading is None:
        return Row(original.value.encode(), key, original.timestamp_ms)
    if way.reading.format is not None or way.reading.reads_headers:
        raise NotReplayed(
            "Its record is no plain JSON, or has headers. Mend the row instead: the letter quotes it."
        )
    if way.reading.rows is not None:
        raise NotReplayed("Its record holds several rows, and the others were taken. Mend this one instead.")
    if not _is_same(raw, original.value):
        raise NotReplayed("The topic has another record there now. Mend the row instead.")
    if not original.is_text:
        raise NotReplayed("It cannot be read now either: the record is not UTF-8 text. Mend the row instead.")
    values, times_ms = pa.array([original.value.encode()], pa.binary()), np.array([original.timestamp_ms])
    read = read_outside(values, times_ms, way.schema, way.reading, Beside(pa.array([key], pa.binary())))
    read = not_far_ahead(read, way.reading, now_ms)
    if read.rejects:
        raise NotReplayed(f"It cannot be read now either: {read.rejects[0].reason}.")
    return _row(read.columns, way.schema, key, int(read.times_us[0]) // 1000)


def as_mended(original: PeekedRecord | None, raw: str, mended: Mended, way: WayIn, now_ms: int) -> Row:
    """Returns a row with other values. Its key is that of its columns, else that of the row as it was. Raises
    NotReplayed."""
    if way.reading is not None and original is not None and not _quotes(raw, original, way.reading):
        original = None
    values, faults = mended_values(mended, way.schema)
    if faults:
        name, why = next(iter(faults.items()))
        raise NotReplayed(f'Its column "{name}": {why}.')
    at = mended_time_ms(mended)
    if at is None and original is None:
        raise NotReplayed("The topic no longer has the row, so its event time is not known. Enter it.")
    time_ms = at if at is not None else original.timestamp_ms if original is not None else 0
    if way.reading is not None and time_ms > now_ms + way.reading.ahead_s * 1000:
        raise NotReplayed(f"Its time is more than {way.reading.ahead_s:g} s ahead of now.")
    if original is None and way.schema.key is None and way.consumer is not None:
        raise NotReplayed("The topic no longer has the row, so its key is not known.")
    key = None if original is None or original.key is None else original.key.encode()
    table = pa.table({name: [value] for name, value in values.items()}, schema=arrow_schema(way.schema))
    return _row(table, way.schema, key, time_ms)


def mended_values(mended: Mended, schema: StreamSchema) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the value of each column, and by column what is wrong. A text may say a number, a truth value
    or a time. A column that is missing has no value."""
    values: dict[str, Any] = {}
    faults = {name: "there is no such column" for name in mended.cells if schema.field(name) is None}
    for field in schema.fields:
        try:
            values[field.name] = _value(mended.cells.get(field.name), field)
        except Unreadable:
            faults[field.name] = f"{field.type.words} is needed"
    try:
        mended_time_ms(mended)
    except NotReplayed as error:
        faults[AT] = str(error)
    return values, faults


def _value(given: Any, field: Field) -> Any:
    return cell(given, field, ColumnReading(path=(field.name,), quoted=True))


def mended_time_ms(mended: Mended) -> int | None:
    """Returns the event time that was entered. Raises NotReplayed."""
    if mended.at is None or not mended.at.strip():
        return None
    try:
        at = datetime.fromisoformat(mended.at.strip())
        if at.tzinfo is None:
            raise NotReplayed("a time with its zone is needed, such as 2024-05-01T12:00:00Z")
        found = (at - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise NotReplayed("a time is needed, such as 2024-05-01T12:00:00Z") from error
    if found < 0:
        raise NotReplayed("a time from 1970 on is needed")
    return found


def cells_of(original: PeekedRecord | None, raw: str, way: WayIn) -> tuple[dict[str, Any], int | None]:
    """Returns the cells of a letter's row as far as they can be read, and its event time in ms."""
    whole = object_in(raw if original is None or way.reading is not None else original.value)
    if way.reading is None:
        found = {name: whole.get(name) for name in way.schema.names}
        return found, None if original is None else original.timestamp_ms
    is_same = original is not None and _quotes(raw, original, way.reading)
    at_ms = original.timestamp_ms if original is not None and is_same else None
    # A letter of another format quotes what was read: an array of cells where it was CSV.
    row = whole if way.reading.format is None else data_in(raw)
    columns = zip(way.schema.names, way.reading.columns, strict=True)
    key = None if original is None else original.key
    found = {
        name: key if column.path[:1] == (KEY,) else _plain(value_at(row, row, column.path))
        for name, column in columns
    }
    if way.reading.time is not None:
        try:
            said = value_at(row, row, way.reading.time.path)
            at_ms = event_time_us(said, way.reading.time) // 1000
        except Unreadable:
            at_ms = None
    return found, at_ms


def _plain(value: Any) -> Any:
    """What is nested in a record is text in a cell."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _row(columns: pa.Table, schema: StreamSchema, key: bytes | None, time_ms: int) -> Row:
    if schema.key is not None:
        text = texts(columns[schema.key])[0].as_py()
        key = None if text is None else text.encode()
    return Row(json_texts(columns, schema)[0].as_py().encode(), key, time_ms)


def _quotes(raw: str, original: PeekedRecord, reading: RecordReading) -> bool:
    """Returns whether a letter quotes this record. Of one that is no JSON it quotes what was read."""
    return reading.format is not None or _is_same(raw, original.value)


def _is_same(raw: str, value: str) -> bool:
    """Returns whether a letter quotes this record. It quotes the beginning of a long one, and is read with
    escapes."""
    value = escaped(value)
    return raw == value or (_SHORTENED in raw and value.startswith(raw[: raw.rindex(_SHORTENED)]))
