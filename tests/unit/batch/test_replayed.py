"""Rows of dead letters as they come back: as they were, or mended."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.reader import _text_keys
from pipeline_runtime.batch.replayed import (
    AT,
    Mended,
    NotReplayed,
    as_it_was,
    as_mended,
    cells_of,
    mended_values,
)
from pipeline_runtime.kafka.peek import PeekedRecord, key_text, peeked
from pipeline_runtime.model.dead_letters import WayIn
from pipeline_runtime.model.paths import HEADER, ROOT
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordFormat, RecordReading, TimeReading

SCHEMA = StreamSchema(
    fields=(
        Field(name="machine", type=FieldType.STRING),
        Field(name="temp", type=FieldType.NUMBER),
        Field(name="at", type=FieldType.TIMESTAMP),
    ),
    key="machine",
)
INSIDE = WayIn("fl.d.a.out", SCHEMA, "power", "fl.d.a.out")
COLUMNS = tuple(ColumnReading(path=(name,)) for name in SCHEMA.names)
OUTSIDE = WayIn("fl.d.events.out", SCHEMA, None, "users", RecordReading(columns=COLUMNS))
NOW_MS = 1_700_000_000_000
MEND = {"machine": "m1", "temp": "21.5", "at": "2024-05-01 12:00"}


def record(value: Any, key: str | None = "k") -> PeekedRecord:
    return PeekedRecord(0, 5, NOW_MS, key, value if isinstance(value, str) else json.dumps(value))


def test_a_row_inside_comes_back_byte_by_byte() -> None:
    row = as_it_was(record('{"temp" : 1 }'), "{}", INSIDE, NOW_MS)
    assert (row.value, row.key, row.time_ms) == (b'{"temp" : 1 }', b"k", NOW_MS)


def test_a_record_of_a_users_topic_is_read_as_its_element_reads_it_now() -> None:
    good = {"machine": "m2", "temp": 3}
    row = as_it_was(record(good), json.dumps(good), OUTSIDE, NOW_MS)
    assert json.loads(row.value) == {"machine": "m2", "temp": 3.0, "at": None}
    assert (row.key, row.time_ms) == (b"m2", NOW_MS)


@pytest.mark.parametrize(
    ("original", "raw", "said"),
    [
        (None, "x", "no longer has the row"),
        (record("other"), "x", "another record"),
        (record("x"), "x", "cannot be read now either"),
        (record("\0x"), "\\x00x", "cannot be read now either"),
        (record({"temp": "x"}), '{"temp": "x"}', "a number is needed"),
    ],
)
def test_what_cannot_come_back_as_it_was_says_why(original: PeekedRecord | None, raw: str, said: str) -> None:
    with pytest.raises(NotReplayed, match=said):
        as_it_was(original, raw, OUTSIDE, NOW_MS)


def test_a_record_that_is_no_text_does_not_come_back_with_other_characters() -> None:
    value = peeked(
        SimpleNamespace(partition=0, offset=5, timestamp=NOW_MS, key=None, value=b'{"machine":"\xe4"}')
    )
    with pytest.raises(NotReplayed, match="not UTF-8 text"):
        as_it_was(value, value.value, OUTSIDE, NOW_MS)


def test_two_keys_that_are_no_text_are_two() -> None:
    keys = [(200).to_bytes(4), (201).to_bytes(4), "ä".encode()]
    texts = [key_text(key) for key in keys]
    assert texts == ["\0\0\0\\xc8", "\0\0\0\\xc9", "ä"]
    assert _text_keys(pa.array([*keys, None], pa.binary())).to_pylist() == [*texts, None]


def test_a_mended_row_has_the_types_of_its_columns_and_the_key_of_its_values() -> None:
    row = as_mended(record("{}"), "{}", Mended(MEND), INSIDE, NOW_MS)
    assert json.loads(row.value) == {"machine": "m1", "temp": 21.5, "at": "2024-05-01T12:00:00.000000Z"}
    assert (row.key, row.time_ms) == (b"m1", NOW_MS)
    later = as_mended(None, "{}", Mended(MEND, "1970-01-01T00:00:02+00:00"), INSIDE, NOW_MS)
    assert later.time_ms == 2000


def test_a_mended_row_without_a_time_or_far_ahead_stays() -> None:
    with pytest.raises(NotReplayed, match="Enter it"):
        as_mended(None, "{}", Mended(MEND), INSIDE, NOW_MS)
    # another record lies where the letter's was, so its time says nothing
    with pytest.raises(NotReplayed, match="Enter it"):
        as_mended(record("other"), "{}", Mended(MEND), OUTSIDE, NOW_MS)
    with pytest.raises(NotReplayed, match="ahead of now"):
        as_mended(None, "{}", Mended(MEND, "2999-01-01T00:00:00Z"), OUTSIDE, NOW_MS)


def test_each_cell_that_does_not_fit_is_told() -> None:
    cells = {"machine": "m", "temp": "21,5", "at": "noon", "new": 1}
    _, faults = mended_values(Mended(cells, "2024-05-01T12:00:00"), SCHEMA)
    assert faults == {
        "new": "there is no such column",
        "temp": "a number is needed",
        "at": "a time is needed",
        AT: "a time with its zone is needed, such as 2024-05-01T12:00:00Z",
    }
    assert mended_values(Mended({"temp": None}), SCHEMA) == (dict.fromkeys(SCHEMA.names), {})


def test_cells_are_filled_with_what_can_be_read() -> None:
    inside = cells_of(record({"machine": "m", "temp": 1}), '{"only":"output"}', INSIDE)
    assert inside == ({"machine": "m", "temp": 1, "at": None}, NOW_MS)
    raw = '{"machine": {"deep": 1}, "temp": "21,5"}'
    assert cells_of(record(raw), raw, OUTSIDE) == (
        {"machine": '{"deep": 1}', "temp": "21,5", "at": None},
        NOW_MS,
    )
    assert cells_of(None, "no JSON", OUTSIDE) == (dict.fromkeys(SCHEMA.names), None)


def test_the_event_time_of_a_mended_row_is_that_of_its_field() -> None:
    reading = RecordReading(columns=COLUMNS, time=TimeReading(path=("t",), format="s"))
    way = WayIn("fl.d.events.out", SCHEMA, None, "users", reading)
    assert cells_of(record('{"t": 2}'), '{"t": 2}', way)[1] == 2000
    assert cells_of(record('{"t": "x"}'), '{"t": "x"}', way)[1] is None


READ_BY = {
    "csv": (RecordFormat(kind="csv"), True, '["m1", "21,5"]'),
    "names": (RecordFormat(kind="csv", names=True), False, '{"machine": "m1", "temp": "21,5"}'),
    "avro": (RecordFormat(kind="avro", registry="http://r"), False, '{"machine": "m1", "temp": "21,5"}'),
}


@pytest.mark.parametrize("written", ["csv", "names", "avro"])
def test_a_letter_of_another_format_is_mended_by_its_cells_and_comes_back_as_it_was_mended(
    written: str,
) -> None:
    format, by_place, raw = READ_BY[written]
    paths: list[Any] = [(0,), (1,), (2,)] if by_place else [("machine",), ("temp",), ("at",)]
    columns = tuple(ColumnReading(path=path) for path in paths)
    way = WayIn("fl.d.events.out", SCHEMA, None, "users", RecordReading(columns=columns, format=format))
    cells, at_ms = cells_of(record("what the topic has"), raw, way)
    assert (cells, at_ms) == ({"machine": "m1", "temp": "21,5", "at": None}, NOW_MS)
    row = as_mended(record("what the topic has"), raw, Mended({**cells, "temp": "21.5"}), way, NOW_MS)
    assert json.loads(row.value) == {"machine": "m1", "temp": 21.5, "at": None}
    assert row.time_ms == NOW_MS


def test_a_letter_with_fewer_cells_than_columns_has_no_value_for_a_header() -> None:
    paths: list[Any] = [(0,), (1,), (HEADER, "zone")]
    reading = RecordReading(
        columns=tuple(ColumnReading(path=path) for path in paths), format=RecordFormat(kind="csv")
    )
    way = WayIn("fl.d.events.out", SCHEMA, None, "users", reading)
    cells, _ = cells_of(record("m1"), '["m1"]', way)
    assert cells == {"machine": "m1", "temp": None, "at": None}


def test_the_only_column_of_a_text_is_what_the_letter_quotes() -> None:
    schema = StreamSchema(fields=(Field(name="line", type=FieldType.INTEGER),))
    reading = RecordReading(columns=(ColumnReading(path=(ROOT,)),), format=RecordFormat(kind="text"))
    way = WayIn("fl.d.events.out", schema, None, "users", reading)
    assert cells_of(record("1O"), '"1O"', way) == ({"line": "1O"}, NOW_MS)
    row = as_mended(record("1O"), '"1O"', Mended({"line": "10"}), way, NOW_MS)
    assert json.loads(row.value) == {"line": 10}
