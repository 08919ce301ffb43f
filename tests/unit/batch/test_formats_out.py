"""Rows become records of Avro, CSV and text."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from pipeline_runtime.batch.output import LETTERS, RECORDS, BatchOutput
from pipeline_runtime.batch.written import HEADERS, as_written
from pipeline_runtime.formats.schema_registry import Registries, no_registry
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, OutputStream
from pipeline_runtime.operators.kafka_out import KafkaOut, KafkaOutParams
from pipeline_runtime.operators.sdk import SchemaMismatch
from tests.schema_registry import RegistryServer
from tests.unit.batch.test_formats import AT, among, numbered

SCHEMA = StreamSchema(
    fields=(
        Field(name="line", type=FieldType.STRING),
        Field(name="watts", type=FieldType.NUMBER),
        Field(name="count", type=FieldType.INTEGER),
        Field(name="at", type=FieldType.TIMESTAMP),
    )
)
FIRST = {"line": "A", "watts": 1.5, "count": 2, "at": "2026-03-01T06:00:00.123Z"}
EMPTY = {"line": None, "watts": None, "count": None, "at": None}


def written(rows: list[dict[str, Any]], registries: Registries = no_registry, **params: Any) -> BatchOutput:
    given = KafkaOutParams.model_validate({"topic": "t", **params})
    schema = KafkaOut(given).output_schema({"in": SCHEMA})
    stream = OutputStream(
        source="out.out", topic="t", data_schema=schema, external=True, writing=given.writing()
    )
    spec = GroupSpec(
        deployment="d",
        pipeline="p",
        group="g",
        elements=(ElementSpec(id="out", type="kafka-out"),),
        outputs=(stream,),
    )
    texts = [{"key": "k", "time_ms": 5, "value": json.dumps(row)} for row in rows]
    records = {"out.out": pa.Table.from_pylist(texts, RECORDS)}
    output = BatchOutput(records, {}, LETTERS.empty_table(), {"out.out": len(rows)})
    return as_written(output, spec, registries)


def values_of(output: BatchOutput) -> list[bytes]:
    found: list[bytes] = output.records["out.out"]["value"].to_pylist()
    return found


def test_avro_is_written_by_a_schema_of_the_columns_and_read_again() -> None:
    with RegistryServer() as registry:
        output = written([FIRST, EMPTY], among(registry), format="avro", registry="plant")
    number = registry.subjects["t-value"]
    schema = json.loads(registry.schemas[number]["schema"])
    rows = []
    for value in values_of(output):
        assert value[:5] == numbered(number, b"")
        rows.append(fastavro.schemaless_reader(BytesIO(value[5:]), schema, None))
    assert rows == [{**FIRST, "at": AT}, EMPTY]
    assert registry.asked == 1


def test_avro_is_written_by_the_schema_of_the_form() -> None:
    fields = [
        {"name": "line", "type": {"type": "enum", "name": "Line", "symbols": ["A", "B"]}},
        {"name": "watts", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}},
        {"name": "at", "type": {"type": "int", "logicalType": "date"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}, "default": str(UUID(int=0))},
    ]
    schema = {"type": "record", "name": "Out", "fields": fields}
    rows = [FIRST, {**FIRST, "line": "C"}, {**FIRST, "watts": 123456.0}, {**FIRST, "line": "B"}]
    output = written(rows, format="avro", avro_schema=json.dumps(schema))
    read_again = [fastavro.schemaless_reader(BytesIO(each), schema, None) for each in values_of(output)]
    assert [each["line"] for each in read_again] == ["A", "B"]
    assert read_again[0]["watts"] == Decimal("1.5")
    assert read_again[0]["at"] == date(2026, 3, 1)
    assert read_again[0]["id"] == UUID(int=0)
    letters = output.letters.to_pylist()
    assert [json.loads(letter["raw"])["line"] for letter in letters] == ["C", "A"]
    assert all("does not fit the Avro schema" in letter["reason"] for letter in letters)
    assert {letter["element"] for letter in letters} == {"out"}


@pytest.mark.parametrize(
    ("fields", "path", "why"),
    [
        ([{"name": "other", "type": "string"}], "params.avro_schema", 'no column "other"'),
        (
            [{"name": "line", "type": {"type": "map", "values": "string"}}],
            "params.avro_schema",
            "of the type map",
        ),
    ],
)
def test_a_schema_that_rows_cannot_have_is_a_fault_of_the_form(fields: Any, path: str, why: str) -> None:
    schema = json.dumps({"type": "record", "name": "Out", "fields": fields})
    with pytest.raises(SchemaMismatch, match=why) as caught:
        written([], format="avro", avro_schema=schema)
    assert caught.value.path == path


def test_csv_and_text_are_written_and_columns_become_headers() -> None:
    rows = [{**FIRST, "line": 'A;"'}, EMPTY]
    csv = written(rows, format="csv", delimiter=";", decimal=",", names_line=True, headers=["count"])
    assert values_of(csv) == [
        b'line;watts;count;at\n"A;""";1,5;2;2026-03-01T06:00:00.123Z',
        b"line;watts;count;at\n;;;",
    ]
    assert csv.records["out.out"][HEADERS].to_pylist() == [[("count", b"2")], []]

    text = written(rows, format="text", text_column="watts")
    assert values_of(text) == [b"1.5"]
    [letter] = text.letters.to_pylist()
    assert "is empty" in letter["reason"]

    headers = written([FIRST], headers=["line"])
    assert [json.loads(value) for value in values_of(headers)] == [FIRST]
    assert headers.records["out.out"][HEADERS].to_pylist() == [[("line", b"A")]]


def test_plain_json_stays_as_the_elements_have_made_it() -> None:
    output = written([FIRST])
    assert output.records["out.out"].schema == RECORDS
