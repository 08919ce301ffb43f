"""Rows to the JSON text of a record: by Spark, and by Arrow."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.tables import utc_texts

JSON_OPTIONS = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}

_TO_ESCAPE = r'["\\\x00-\x1f]'


def json_texts(rows: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
    """A JSON object for each row; null where a number is one that JSON does not have."""
    if not schema.fields:
        return pa.chunked_array([pa.repeat("{}", rows.num_rows)])
    parts: list[pa.ChunkedArray | str] = []
    for place, field in enumerate(schema.fields):
        before = "," if place else "{"
        parts += [
            f"{before}{json.dumps(field.name, ensure_ascii=False)}:",
            _value_texts(rows[field.name], field.type),
        ]
    return pc.binary_join_element_wise(*parts, "}", "")  # null where a part is


def _value_texts(values: pa.ChunkedArray, type_: FieldType) -> pa.ChunkedArray:
    """Null stands for what cannot be written."""
    match type_:
        case FieldType.NUMBER:
            there = pc.if_else(
                pc.fill_null(pc.is_finite(values), True), values, pa.scalar(None, pa.float64())
            )
            texts = _with_decimals(there.cast(pa.string()))
        case FieldType.TIMESTAMP:
            texts = pc.binary_join_element_wise('"', utc_texts(values), 'Z"', "")
        case FieldType.STRING:
            texts = _quoted(_escaped(values))
        case _:
            texts = values.cast(pa.string())
    return pc.if_else(pc.is_null(values), "null", texts)


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
