"""Rows to the values of records: a JSON object for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.expressions.casts import texts

_TO_ESCAPE = r'["\\\x00-\x1f]'


def json_texts(rows: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
    """A JSON object for each row. The rows have no number that JSON does not have (see `finite_rows`)."""
    if not schema.fields:
        return pa.chunked_array([pa.repeat("{}", rows.num_rows)])
    found: dict[str, pa.ChunkedArray] = {}
    for type_ in {field.type for field in schema.fields}:
        # All columns of a type at once: a batch of few rows costs by the call, not by the row.
        names = [field.name for field in schema.fields if field.type is type_]
        values = pc.coalesce(_value_texts(_end_to_end(rows, names), type_), "null")
        for place, name in enumerate(names):
            found[name] = values.slice(place * rows.num_rows, rows.num_rows)
    parts: list[pa.ChunkedArray | str] = []
    for place, field in enumerate(schema.fields):
        before = "," if place else "{"
        parts += [f"{before}{json.dumps(field.name, ensure_ascii=False)}:", found[field.name]]
    return pc.binary_join_element_wise(*parts, "}", "")


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
    """Null stays null."""
    match type_:
        case FieldType.TIMESTAMP:
            return _quoted(texts(values))
        case FieldType.STRING:
            return _quoted(_escaped(values))
        case _:
            return texts(values)


def _quoted(plain: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise('"', plain, '"', "")


def _escaped(plain: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pc.any(pc.match_substring_regex(plain, _TO_ESCAPE)).as_py():
        return plain
    escaped = [
        None if text is None else json.dumps(text, ensure_ascii=False)[1:-1] for text in plain.to_pylist()
    ]
    return pa.chunked_array([pa.array(escaped, pa.string())])
