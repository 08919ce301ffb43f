"""Turns rows into the values of records: a JSON object for each row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.texts import texts

_QUOTED = (FieldType.STRING, FieldType.TIMESTAMP)
_QUOTE, _BACKSLASH = b'"\\'
_FIRST_PRINTABLE = 0x20


def json_texts(rows: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
    """A JSON object for each row. The rows have no number that JSON does not have (see `finite_rows`)."""
    if not schema.fields:
        return pa.chunked_array([pa.repeat("{}", rows.num_rows)])
    found: dict[str, pa.ChunkedArray] = {}
    for type_ in {field.type for field in schema.fields}:
        # All columns of a type at once: a batch of few rows costs by the call, not by the row.
        names = [field.name for field in schema.fields if field.type is type_]
        values = _value_texts(_end_to_end(rows, names), type_)
        for place, name in enumerate(names):
            found[name] = values.slice(place * rows.num_rows, rows.num_rows)
    parts: list[pa.ChunkedArray | str] = []
    before = "{"
    for place, field in enumerate(schema.fields):
        before += f"{',' if place else ''}{json.dumps(field.name, ensure_ascii=False)}:"
        values, quote = found[field.name], '"' if field.type in _QUOTED else ""
        if values.null_count:
            values = pc.coalesce(_quoted(values) if quote else values, "null")
            quote = ""
        parts += [before + quote, values]
        before = quote
    return pc.binary_join_element_wise(*parts, before + "}", "")


def finite_rows(rows: pa.Table, schema: StreamSchema) -> pa.ChunkedArray | None:
    """Which rows have only numbers that JSON has: a truth value for each row. Returns None if all do."""
    names = [field.name for field in schema.fields if field.type is FieldType.NUMBER]
    if not names or pc.all(pc.is_finite(_end_to_end(rows, names))).as_py() in (True, None):
        return None  # a null is no number, and `all` passes over it
    columns = [pc.coalesce(pc.is_finite(rows[name]), True) for name in names]
    return reduce(pc.and_, columns)


def _end_to_end(rows: pa.Table, names: Sequence[str]) -> pa.ChunkedArray:
    """Columns of one type, one behind the other."""
    first = rows[names[0]]
    if len(names) == 1:
        return first
    return pa.chunked_array([chunk for name in names for chunk in rows[name].chunks], first.type)


def _value_texts(values: pa.ChunkedArray, type_: FieldType) -> pa.ChunkedArray:
    """Without quotes. Null stays null."""
    return _escaped(values) if type_ is FieldType.STRING else texts(values)


def _quoted(plain: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise('"', plain, '"', "")


def _escaped(plain: pa.ChunkedArray) -> pa.ChunkedArray:
    if not any(_may_need_escapes(chunk) for chunk in plain.chunks):
        return plain
    escaped = [
        None if text is None else json.dumps(text, ensure_ascii=False)[1:-1] for text in plain.to_pylist()
    ]
    return pa.chunked_array([pa.array(escaped, pa.string())])


def _may_need_escapes(plain: pa.StringArray) -> bool:
    """Also looks at what may lie where a text is null."""
    _, ends, data = plain.buffers()
    if data is None or not len(plain):
        return False
    offsets = np.frombuffer(ends, np.int32)[plain.offset : plain.offset + len(plain) + 1]
    found = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    if not len(found):
        return False
    return bool(found.min() < _FIRST_PRINTABLE or (found == _QUOTE).any() or (found == _BACKSLASH).any())
