"""Records of Avro, CSV and text become rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from pipeline_runtime.batch.outside import Beside, Read, not_far_ahead, read_outside
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError, no_registry
from pipeline_runtime.operators.kafka_in import KafkaIn, KafkaInParams
from pipeline_runtime.operators.sdk import SchemaMismatch
from tests.schema_registry import RegistryServer

NOW_MS = 1_790_000_000_000
AT = datetime(2026, 3, 1, 6, 0, 0, 123_000, UTC)
MACHINE: dict[str, Any] = {
    "type": "record",
    "name": "Machine",
    "namespace": "plant",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "count", "type": "int"},
        {"name": "temperature", "type": ["null", "double"]},
        {"name": "runs", "type": "boolean"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["ON", "OFF"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        },
        {
            "name": "place",
            "type": {"type": "record", "name": "Place", "fields": [{"name": "hall", "type": "string"}]},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "former", "type": ["null", "Place"]},
    ],
}
ROW: dict[str, Any] = {
    "id": "6f1f7a4e-6f1e-4d52-8a51-2f2c3d4e5f60",
    "count": 3,
    "temperature": 21.5,
    "runs": True,
    "state": "ON",
    "at": AT,
    "seen": None,
    "day": date(2026, 2, 28),
    "price": Decimal("12.30"),
    "place": {"hall": "B"},
    "tags": ["a", "b"],
    "former": None,
}
TAKEN_OVER = {
    "id": ROW["id"],
    "count": 3,
    "temperature": 21.5,
    "runs": True,
    "state": "ON",
    "at": AT,
    "seen": None,
    "day": datetime(2026, 2, 28, tzinfo=UTC),
    "price": 12.3,
    "place_hall": "B",
    "former_hall": None,
}


def avro(schema: Any, row: Any) -> bytes:
    target = BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), row)
    return target.getvalue()


def read(
    values: list[bytes | None],
    beside: Beside | None = None,
    registries: Registries = no_registry,
    **params: Any,
) -> Read:
    given = KafkaInParams.model_validate({"topic": "t", **params})
    schema = KafkaIn(given).output_schema({})
    times_ms = np.full(len(values), NOW_MS)
    records = pa.array(values, pa.binary())
    found = read_outside(records, times_ms, schema, given.reading(), beside or Beside(), registries)
    return not_far_ahead(found, given.reading(), NOW_MS)


def in_avro(values: list[bytes | None], schema: Any = MACHINE, **params: Any) -> Read:
    return read(values, format="avro", avro_schema=json.dumps(schema), **params)


# -- Avro in ---------------------------------------------------------------------------------------------


def test_the_columns_of_a_form_without_any_are_those_of_its_avro_schema() -> None:
    found = in_avro([avro(MACHINE, ROW)])
    assert found.columns.to_pylist() == [TAKEN_OVER]
    assert found.rejects == ()


def test_columns_of_avro_lie_where_they_say_and_may_be_the_event_time_and_rows() -> None:
    columns = [
        {"name": "hall", "type": "string", "from": "place.hall"},
        {"name": "second", "type": "string", "from": "tags[1]"},
        {"name": "exact", "type": "string", "from": "price"},
        {"name": "day", "type": "string"},
    ]
    found = in_avro([avro(MACHINE, ROW)], columns=columns, time={"from": "at"})
    expected = {"hall": "B", "second": "b", "exact": "12.30", "day": "2026-02-28"}
    assert found.columns.to_pylist() == [expected]
    assert found.times_us.tolist() == [int(AT.timestamp() * 1_000_000)]


def test_an_array_of_records_is_rows() -> None:
    entry = {"type": "record", "name": "Value", "fields": [{"name": "v", "type": "double"}]}
    schema = {
        "type": "record",
        "name": "Values",
        "fields": [
            {"name": "line", "type": "string"},
            {"name": "values", "type": {"type": "array", "items": entry}},
        ],
    }
    columns = [{"name": "v", "type": "number"}, {"name": "line", "from": "$.line"}]
    value = avro(schema, {"line": "L", "values": [{"v": 1.0}, {"v": 2.0}]})
    found = in_avro([value], schema, columns=columns, rows="values")
    assert found.columns.to_pylist() == [{"v": 1.0, "line": "L"}, {"v": 2.0, "line": "L"}]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "a tombstone"),
        (b"", "cut off"),
        (avro(MACHINE, ROW)[:-4], "does not fit its Avro schema"),
        (avro(MACHINE, ROW) + b"more", "4 bytes are left after the row"),
        (b"\0\0\0\0\7" + avro(MACHINE, ROW), "registry's prefix"),
        (b'{"id": 1}', "does not fit its Avro schema"),
    ],
)
def test_a_record_that_is_not_of_its_schema_is_a_dead_letter_and_the_others_come(
    value: bytes | None, why: str
) -> None:
    found = in_avro([avro(MACHINE, ROW), value, avro(MACHINE, ROW)])
    assert found.columns.to_pylist() == [TAKEN_OVER, TAKEN_OVER]
    [reject] = found.rejects
    assert reject.index == 1
    assert why in reject.reason


def test_a_dead_letter_shows_what_was_read_or_the_bytes() -> None:
    columns = [{"name": "count", "type": "integer", "from": "state"}]
    found = in_avro([avro(MACHINE, ROW), b"\1\2"], columns=columns)
    refused, broken = found.rejects
    assert "is the text" in refused.reason
    assert json.loads(refused.raw or "")["place"] == {"hall": "B"}
    assert broken.raw == "01 02"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "is not JSON"),
        ('{"type": "nothing"}', "is no Avro schema"),
        (
            json.dumps(
                {
                    "type": "record",
                    "name": "Node",
                    "fields": [{"name": "next", "type": ["null", "Node"]}],
                }
            ),
            "holds itself",
        ),
        (
            json.dumps(
                {
                    "type": "record",
                    "name": "R",
                    "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}],
                }
            ),
            "take no bytes",
        ),
        ("", "needs a schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_fault_of_the_form(schema: str, why: str) -> None:
    params = {"topic": "t", "format": "avro", "avro_schema": schema, "columns": [{"name": "n"}]}
    with pytest.raises(SchemaMismatch, match=why) as caught:
        KafkaIn(KafkaInParams.model_validate(params)).output_schema({})
    assert caught.value.path == "params.avro_schema"


# -- the registry ----------------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


def among(registry: RegistryServer) -> Registries:
    """Returns the registry under any name."""
    asker = registry.asker()
    return lambda name: asker


def numbered(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def test_each_record_is_read_by_the_schema_of_its_writer_which_is_asked_for_once(
    registry: RegistryServer,
) -> None:
    newer = {**MACHINE, "fields": [{"name": "more", "type": "string"}, *MACHINE["fields"]]}
    first = registry.register("t-value", json.dumps(MACHINE))
    second = registry.register("t-value", json.dumps(newer))
    values: list[bytes | None] = [
        numbered(first, avro(MACHINE, ROW)),
        numbered(second, avro(newer, {**ROW, "more": "x"})),
    ]
    columns = [{"name": "count", "type": "integer"}, {"name": "more"}]
    found = read(values * 20, registries=among(registry), format="avro", registry="plant", columns=columns)
    rows = [{"count": 3, "more": None}, {"count": 3, "more": "x"}]
    assert found.columns.to_pylist() == rows * 20
    assert registry.asked == 2


def test_a_schema_in_the_form_is_the_readers(registry: RegistryServer) -> None:
    number = registry.register("t-value", json.dumps(MACHINE))
    reader = {
        "type": "record",
        "name": "Machine",
        "namespace": "plant",
        "fields": [
            {"name": "count", "type": "double"},
            {"name": "missing", "type": "string", "default": "none"},
        ],
    }
    value = numbered(number, avro(MACHINE, ROW))
    found = in_avro([value], reader, registries=among(registry), registry="plant")
    assert found.columns.to_pylist() == [{"count": 3.0, "missing": "none"}]


def test_what_is_no_avro_is_a_dead_letter_that_says_what_it_is(registry: RegistryServer) -> None:
    registry.schemas[7] = {"schema": "message R {}", "schemaType": "PROTOBUF"}
    registry.schemas[8] = {"schema": "{}", "schemaType": "JSON"}
    registry.schemas[9] = {"schema": json.dumps(MACHINE), "references": [{"name": "plant.Place"}]}
    registry.schemas[10] = {"schema": '{"type": "record"}'}
    values: list[bytes | None] = [*(numbered(n, b"x") for n in (7, 7, 8, 9, 10)), b"{}"]
    columns = [{"name": "count", "type": "integer"}]
    found = read(values, registries=among(registry), format="avro", registry="plant", columns=columns)
    protobuf, again, json_schema, refers, odd, plain = (reject.reason for reject in found.rejects)
    assert protobuf == again == "the schema 7 of the registry is Protobuf, and only Avro is read"
    assert json_schema == "the schema 8 of the registry is JSON Schema, and only Avro is read"
    assert "the schema 9 of the registry refers to other schemas" in refers
    assert "the schema 10 of the registry cannot be used" in odd
    assert "does not begin with a schema registry's prefix" in plain
    assert registry.asked == 4


def test_a_schema_that_the_registry_does_not_have_yet_is_waited_for(registry: RegistryServer) -> None:
    registries, number = among(registry), 100  # the first one that the registry gives
    values: list[bytes | None] = [numbered(number, avro(MACHINE, ROW))]
    columns = [{"name": "count", "type": "integer"}]
    for _ in range(2):
        with pytest.raises(SchemaRegistryError, match=f"{registry.url} has no schema 100"):
            read(values, registries=registries, format="avro", registry="plant", columns=columns)
    assert registry.register("t-value", json.dumps(MACHINE)) == number
    found = read(values, registries=registries, format="avro", registry="plant", columns=columns)
    assert found.columns.to_pylist() == [{"count": 3}]


def test_a_registry_that_does_not_answer_is_no_reason_for_a_dead_letter(registry: RegistryServer) -> None:
    with RegistryServer() as gone:
        away = among(gone)
    with pytest.raises(SchemaRegistryError, match="Nobody listens at the schema registry"):
        read([numbered(6, b"x")], registries=away, format="avro", registry="plant", columns=[{"name": "n"}])
    registry.refuses = True
    with pytest.raises(SchemaRegistryError, match=r"for the subject t-value\. It says: The schema is incomp"):
        registry.asker().number("t-value", json.dumps(MACHINE))


# -- CSV, text, keys and headers -------------------------------------------------------------------------


def test_lines_of_csv_are_rows_of_cells_in_their_order() -> None:
    columns = [
        {"name": "line"},
        {"name": "watts", "type": "number"},
        {"name": "on", "type": "boolean"},
        {"name": "last", "type": "integer", "from": "[4]"},
    ]
    values: list[bytes | None] = [b'"A, B",1.5,true,x,7\r\nC,,FALSE,x,8\n', b"D,-2e3,true,x,9"]
    found = read(values, format="csv", columns=columns)
    assert found.columns.to_pylist() == [
        {"line": "A, B", "watts": 1.5, "on": True, "last": 7},
        {"line": "C", "watts": None, "on": False, "last": 8},
        {"line": "D", "watts": -2000.0, "on": True, "last": 9},
    ]
    assert found.places.tolist() == [0, 0, 1]


def test_csv_may_have_names_another_delimiter_and_commas_in_numbers() -> None:
    columns = [
        {"name": "watts", "type": "number", "from": "Leistung"},
        {"name": "note"},
    ]
    text = b"note;Leistung;at\n1,5;1,5;1772344800\n2;-0,25;1772344801\n"
    given = {"delimiter": ";", "decimal": ",", "names_line": True, "time": {"from": "at", "format": "s"}}
    found = read([text], format="csv", columns=columns, **given)
    assert found.columns.to_pylist() == [{"watts": 1.5, "note": "1,5"}, {"watts": -0.25, "note": "2"}]
    assert found.times_us.tolist() == [1_772_344_800_000_000, 1_772_344_801_000_000]


def test_a_column_with_a_path_takes_up_no_cell_of_csv() -> None:
    columns = [{"name": "last", "type": "integer", "from": "[2]"}, {"name": "line"}]
    assert read([b"A,x,7"], format="csv", columns=columns).columns.to_pylist() == [{"last": 7, "line": "A"}]


@pytest.mark.parametrize(("names", "path"), [(False, "Leistung"), (True, "[3]")])
def test_a_path_that_leads_to_no_cell_of_csv_is_refused(names: bool, path: str) -> None:
    columns = [{"name": "watts", "type": "number", "from": path}]
    with pytest.raises(SchemaMismatch, match="is no cell of a line of CSV"):
        read([], format="csv", columns=columns, names_line=names)
    with pytest.raises(SchemaMismatch, match="is no cell of a line of CSV"):
        read([], format="csv", columns=[{"name": "a"}], names_line=names, time={"from": path})


def test_a_point_in_a_number_is_not_guessed_where_the_comma_is_before_decimals() -> None:
    columns = [{"name": "watts", "type": "number"}, {"name": "note"}]
    found = read([b"1.500;a", b"1,5;1.2"], format="csv", columns=columns, delimiter=";", decimal=",")
    assert found.columns.to_pylist() == [{"watts": 1.5, "note": "1.2"}]
    assert 'the number "1.500" has a point' in found.rejects[0].reason


@pytest.mark.parametrize(
    ("value", "names", "why"),
    [
        (b"A", False, "it has 1 cells, and at least 2 are needed"),
        (b"A,x", False, "a number is needed"),
        (b'"A,1', False, "is not CSV"),
        (b"", False, "is empty"),
        (b"\xff\xfe", False, "is not UTF-8"),
        (b"line,watts\nA", True, "the line of names has another number"),
        (b"line,line\nA,1", True, "have one name"),
    ],
)
def test_csv_that_is_cut_off_or_does_not_fit_is_a_dead_letter(value: bytes, names: bool, why: str) -> None:
    columns = [{"name": "line"}, {"name": "watts", "type": "number"}]
    found = read([value], format="csv", columns=columns, names_line=names)
    [reject] = found.rejects
    assert why in reject.reason
    assert found.columns.num_rows == 0


def test_text_is_one_column_beside_the_key_and_headers() -> None:
    columns = [
        {"name": "value", "type": "number"},
        {"name": "machine", "type": "integer", "place": "key"},
        {"name": "trace", "place": "header", "from": "trace-id"},
    ]
    beside = Beside(
        pa.array([b"7", None, b"x"], pa.binary()),
        {0: (("trace-id", b"old"), ("trace-id", b"new")), 1: (("other", b"x"), ("trace-id", None))},
    )
    found = read([b" 21.5 ", b"3", b"4"], beside, format="text", columns=columns)
    assert found.columns.to_pylist() == [
        {"value": 21.5, "machine": 7, "trace": "new"},
        {"value": 3.0, "machine": None, "trace": None},
    ]
    [reject] = found.rejects
    assert 'column "machine" is the text "x"' in reject.reason


def test_json_has_keys_and_headers_too() -> None:
    columns = [{"name": "n", "type": "integer"}, {"name": "machine", "place": "key"}]
    found = read([b'{"n":1}'], Beside(pa.array([b"m"], pa.binary())), columns=columns)
    assert found.columns.to_pylist() == [{"n": 1, "machine": "m"}]
