"""Turns rows into the values and headers of records in users' topics."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from io import StringIO
from typing import Any

from pipeline_runtime.formats.avro import AvroWriter
from pipeline_runtime.formats.avro_schema import avro_schema, schema_text_of
from pipeline_runtime.formats.malformed import Unwritable
from pipeline_runtime.formats.schema_registry import Registries, prefix
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import RecordFormat, RecordWriting

Row = Mapping[str, Any]
"""A row as JSON has it: a time is a text in ISO 8601."""
Headers = tuple[tuple[str, bytes], ...]


class RowWriter:
    """Writes rows of one stream."""

    def __init__(self, writing: RecordWriting, schema: StreamSchema) -> None:
        self._writing = writing
        self._schema = schema
        self._value = _value_writer(writing, schema)

    def prefix(self, registries: Registries) -> bytes:
        """Returns how each value begins: with the number of its schema, if a registry keeps it. Raises
        SchemaRegistryError."""
        format = self._writing.format
        if format is None or format.registry is None:
            return b""
        text = avro_text(format, self._schema)
        return prefix(registries(format.registry).number(self._writing.subject, text))

    def value(self, row: Row) -> bytes:
        """Returns what stands behind the prefix. Raises Unwritable."""
        return self._value(row)

    def headers(self, row: Row) -> Headers:
        """Returns a header for each of the columns that has a value."""
        names = self._writing.headers
        return tuple((name, cell_text(row[name]).encode()) for name in names if row.get(name) is not None)


@lru_cache(maxsize=64)
def row_writer(writing: RecordWriting, schema: StreamSchema) -> RowWriter:
    """Returns the one of this process."""
    return RowWriter(writing, schema)


def cell_text(value: Any) -> str:
    """Returns a value as text. A number and a truth value stand there as in JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value_writer(writing: RecordWriting, schema: StreamSchema) -> Callable[[Row], bytes]:
    format = writing.format
    if format is None:
        return lambda row: json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
    match format.kind:
        case "avro":
            return AvroWriter(avro_schema(avro_text(format, schema))).written
        case "csv":
            return lambda row: _line(row, writing, schema).encode()
        case "text":
            return lambda row: _text(row, writing.column)


def _text(row: Row, column: str) -> bytes:
    value = row.get(column)
    if value is None:
        raise Unwritable(f'its column "{column}" is empty, so there is no text')
    return cell_text(value).encode()


def _line(row: Row, writing: RecordWriting, schema: StreamSchema) -> str:
    assert writing.format is not None
    target = StringIO()
    writer = csv.writer(target, delimiter=writing.format.delimiter, lineterminator="\n")
    if writing.format.names:
        writer.writerow(schema.names)
    has_comma = writing.format.decimal == ","
    writer.writerow([_cell(row.get(name), has_comma=has_comma) for name in schema.names])
    return target.getvalue().removesuffix("\n")


def _cell(value: Any, *, has_comma: bool) -> str:
    if value is None:
        return ""
    text = cell_text(value)
    return text.replace(".", ",") if has_comma and isinstance(value, float) else text


def avro_text(format: RecordFormat, schema: StreamSchema) -> str:
    """Returns the Avro schema of rows that are written: the element's own, or one made of the columns."""
    return format.avro or schema_text_of(schema, "Row")
