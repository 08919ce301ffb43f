"""Rows to the texts of a record: its value as JSON, and its key."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.tables import utc_texts

_TO_ESCAPE = r'["\\\x00-\x1f]'


def json_texts(rows: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
    """A JSON object for each row. The rows have no number that JSON does not have (see `finite_rows`)."""
    if not schema.fields:
        return pa.chunked_array([pa.repeat("{}", rows.num_rows)])
    parts: list[pa.ChunkedArray | str] = []
    for place, field in enumerate(schema.fields):
        before = "," if place else "{"
        parts += [
            f"{before}{json.dumps(field.name, ensure_ascii=False)}:",
            pc.fill_null(_value_texts(rows[field.name], field.type), "null"),
        ]
    return pc.binary_join_element_wise(*parts, "}", "")


def finite_rows(rows: pa.Table, schema: StreamSchema) -> pa.ChunkedArray | None:
    """Which rows have only numbers that JSON has: a truth value for each row. Returns None if all do."""
    finite = None
    for field in schema.fields:
        if field.type is not FieldType.NUMBER:
            continue
        these = pc.fill_null(pc.is_finite(rows[field.name]), True)
        if not pc.all(these).as_py():
            finite = these if finite is None else pc.and_(finite, these)
    return finite


def key_texts(values: pa.ChunkedArray, type_: FieldType) -> pa.ChunkedArray:
    """A field's values as keys of records: as in the record's JSON, without quotes. Null stays null."""
    match type_:
        case FieldType.STRING:
            return values
        case FieldType.TIMESTAMP:
            return pc.binary_join_element_wise(utc_texts(values), "Z", "")
        case _:
            return _value_texts(values, type_)


def _value_texts(values: pa.ChunkedArray, type_: FieldType) -> pa.ChunkedArray:
    """Null stays null."""
    match type_:
        case FieldType.NUMBER:
            return _with_decimals(values.cast(pa.string()))
        case FieldType.TIMESTAMP:
            return pc.binary_join_element_wise('"', utc_texts(values), 'Z"', "")
        case FieldType.STRING:
            return _quoted(_escaped(values))
        case _:
            return values.cast(pa.string())


def _with_decimals(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """1.0 for what Arrow writes as 1: a reader that looks at the text sees that it is no integer."""
    whole = pc.match_substring_regex(texts, r"^-?[0-9]+$")
    if not pc.any(whole).as_py():
        return texts
    return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)


def _quoted(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _escaped(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pc.any(pc.match_substring_regex(texts, _TO_ESCAPE)).as_py():
        return texts
    escaped = [
        None if text is None else json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.to_pylist()
    ]
    return pa.chunked_array([pa.array(escaped, pa.string())])
