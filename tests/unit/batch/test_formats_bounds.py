"""Small records that would make much."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.outside import Beside
from pipeline_runtime.formats.avro import AvroWriter
from pipeline_runtime.formats.avro_schema import SchemaInvalid, avro_schema
from pipeline_runtime.formats.malformed import Unwritable
from tests.unit.batch.test_formats import avro, in_avro, read


def test_an_array_of_very_many_small_values_is_refused_before_it_is_read() -> None:
    entry = {"type": "record", "name": "E", "fields": [{"name": "a", "type": "int"}]}
    field = {"name": "more", "type": {"type": "array", "items": entry}}
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, field]}
    few, many = avro(schema, {"a": 1, "more": [{"a": 0}] * 10}), avro(schema, {"a": 1, "more": []})
    many = many[:-1] + b"\x80\x89\x7a" + bytes(1_000_000) + b"\0"  # as a block of a million entries
    found = in_avro([few, many], schema, columns=[{"name": "a", "type": "integer"}])
    assert found.columns.num_rows == 1
    [reject] = found.rejects
    assert "could hold more than 2,000,000 values" in reject.reason


def nested(depth: int) -> Any:
    """A schema of records in each other, which takes one byte."""
    schema: Any = "int"
    for n in range(depth):
        schema = {"type": "record", "name": f"R{n}", "fields": [{"name": "a", "type": schema}]}
    return schema


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("double", 1 / 8),
        ("string", 1),
        (["null", "double"], 1),
        (nested(40), 64),
        ({"type": "fixed", "name": "F", "size": 16}, 1 / 16),
    ],
)
def test_how_many_values_an_array_makes_of_a_byte(items: Any, expected: float) -> None:
    schema = json.dumps({"type": "array", "items": items})
    assert avro_schema(schema).values_per_byte == expected


def test_a_schema_without_arrays_makes_no_more_values_than_it_has_types() -> None:
    assert avro_schema('{"type": "record", "name": "R", "fields": []}').values_per_byte == 0


def test_a_decimal_of_very_many_digits_is_refused() -> None:
    def schema(digits: int) -> dict[str, Any]:
        price = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": digits}
        return {"type": "record", "name": "R", "fields": [{"name": "price", "type": price}]}

    plain = {"type": "record", "name": "R", "fields": [{"name": "price", "type": "bytes"}]}
    long = avro(plain, {"price": b"\x01" * 100_000})
    [reject] = in_avro([long], schema(30)).rejects
    assert "a decimal has 100,000 bytes" in reject.reason
    with pytest.raises(SchemaInvalid, match="at most 100"):
        avro_schema(json.dumps(schema(100_000_000)))


def test_a_key_and_headers_beside_very_many_rows_are_refused() -> None:
    for place in ("key", "header"):
        columns = [{"name": "n", "type": "integer"}, {"name": "beside", "place": place}]
        many, few = b"1\n" * 10_000, b"1\n" * 10
        header = ("beside", b"x" * 10_000)
        beside = Beside(pa.array([b"k" * 10_000] * 2, pa.binary()), {0: (header,), 1: (header,)})
        found = read([many, few], beside, format="csv", columns=columns)
        assert found.columns.num_rows == 10
        [reject] = found.rejects
        assert "the texts beside its 10,000 rows would take 100,000,000 characters" in reject.reason


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        ("int", -(2**31), 2**31),
        ("long", 2**63 - 1, True),
        ("float", 3.0e38, 1e300),
        ("double", 1e300, "1.5"),
        ("boolean", False, "false"),
    ],
)
def test_a_value_that_its_avro_field_cannot_hold_is_not_written(kind: str, taken: Any, refused: Any) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", kind]}]}
    writer = AvroWriter(avro_schema(json.dumps(schema)))
    assert writer.written({"a": taken})
    with pytest.raises(Unwritable, match="does not fit the Avro schema"):
        writer.written({"a": refused})
