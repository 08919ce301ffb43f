"""Records of a topic that others write become rows as the element's parameters say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch.outside import Beside, Read, _mapped, not_far_ahead, read_outside
from pipeline_runtime.formats.schema_registry import no_registry
from pipeline_runtime.operators.kafka_in import KafkaIn, KafkaInParams

NOW_MS = 1_790_000_000_000


def read(values: list[Any], *, at_ms: int = NOW_MS, **params: Any) -> Read:
    """Reads values at once: bytes (or None) as they are, anything else as JSON."""
    given = KafkaInParams.model_validate({"topic": "t", **params})
    raw = [value if isinstance(value, bytes | None) else json.dumps(value).encode() for value in values]
    schema = KafkaIn(given).output_schema({})
    values_read = pa.array(raw, pa.binary())
    found = read_outside(values_read, np.full(len(raw), at_ms), schema, given.reading())
    return not_far_ahead(found, given.reading(), NOW_MS)


def column(name: str, type: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def reasons(found: Read) -> list[str]:
    return [reject.reason for reject in found.rejects]


def test_nan_is_no_value_and_the_rest_of_the_row_counts() -> None:
    found = read(
        [b'{"temperature": NaN, "pressure": 1013.2}', b'{"temperature": 20, "pressure": 1000}'],
        columns=[column("temperature", "number"), column("pressure", "number")],
    )
    rows = [{"temperature": None, "pressure": 1013.2}, {"temperature": 20.0, "pressure": 1000.0}]
    assert found.columns.to_pylist() == rows
    assert found.rejects == ()


def test_nan_in_a_column_of_whole_numbers_is_no_value_either() -> None:
    found = read([b'{"n": NaN, "k": "a"}'], columns=[column("n", "integer"), column("k")])
    assert found.columns.to_pylist() == [{"n": None, "k": "a"}]


def test_fields_are_read_under_other_names() -> None:
    found = read(
        [b'{"_id":"a1","_value":1,"T":20,"t":0}'],
        columns=[
            column("id", **{"from": "_id"}),
            column("value", "number", **{"from": "_value"}),
            column("T", "number"),
            column("seconds", "integer", **{"from": "t"}),
        ],
    )
    assert found.columns.to_pylist() == [{"id": "a1", "value": 1.0, "T": 20.0, "seconds": 0}]


def test_fields_that_lie_deeper_are_read_by_their_path() -> None:
    columns = [
        column("b", "integer", **{"from": "a[0].b"}),
        column("second", "integer", **{"from": "a[1].b"}),
        column("dots", **{"from": '["x.y"].z'}),
    ]
    found = read(
        [{"a": [{"b": 1}, {"b": 2}], "x.y": {"z": "deep"}}, {"a": [{"b": 3}]}, {"a": 7}], columns=columns
    )
    assert found.columns.to_pylist() == [
        {"b": 1, "second": 2, "dots": "deep"},
        {"b": 3, "second": None, "dots": None},
        {"b": None, "second": None, "dots": None},
    ]


def test_numbers_in_quotes_are_numbers_where_that_is_asked() -> None:
    values = [
        {"v": "1.5", "n": "7", "on": "true"},
        {"v": 2, "n": 8, "on": False},
        {"v": "", "n": "NaN", "on": None},
    ]
    names = [("v", "number"), ("n", "integer"), ("on", "boolean")]
    found = read(values, columns=[column(name, type, quoted=True) for name, type in names])
    assert found.columns.to_pylist() == [
        {"v": 1.5, "n": 7, "on": True},
        {"v": 2.0, "n": 8, "on": False},
        {"v": None, "n": None, "on": None},
    ]
    asked_not = read(values[:1], columns=[column("v", "number")])
    assert ["Tick that it may be written as text" in reason for reason in reasons(asked_not)] == [True]
    wrong = read([{"v": "1,5"}], columns=[column("v", "number", quoted=True)])
    assert len(wrong.rejects) == 1


@pytest.mark.parametrize(
    ("value", "format", "expected_us"),
    [
        ("2026-03-01T06:00:00Z", "iso", 1_772_344_800_000_000),
        ("2026-03-01 07:00:00.25+01:00", "iso", 1_772_344_800_250_000),
        ("2026-03-01T06:00:00", "iso", 1_772_344_800_000_000),
        (1_772_344_800, "s", 1_772_344_800_000_000),
        ("1772344800", "s", 1_772_344_800_000_000),
        (1_772_344_800_123, "ms", 1_772_344_800_123_000),
        (1_772_344_800_123_456, "us", 1_772_344_800_123_456),
    ],
)
def test_the_event_time_may_lie_in_a_field(value: Any, format: str, expected_us: int) -> None:
    found = read([{"m": {"at": value}}], columns=[column("k")], time={"from": "m.at", "format": format})
    assert found.times_us.tolist() == [expected_us]


@pytest.mark.parametrize(
    ("row", "format", "reason"),
    [
        ({}, "iso", "no event time"),
        ({"at": "yesterday"}, "iso", "no time: yesterday"),
        ({"at": 1_772_344_800}, "iso", "text is needed"),
        ({"at": 1_772_344_800_123_456_789}, "ms", "is its unit right"),
        ({"at": -5}, "s", "is its unit right"),
        ({"at": True}, "s", "no number"),
    ],
)
def test_a_row_without_an_event_time_is_a_dead_letter(row: Any, format: str, reason: str) -> None:
    found = read([row], columns=[column("k")], time={"from": "at", "format": format})
    assert found.columns.num_rows == 0
    assert reason in reasons(found)[0]


def test_a_record_may_hold_an_array_of_rows() -> None:
    record = {"device": "d1", "data": {"rows": [{"v": 1}, {"v": "x"}, {"v": 3}]}}
    columns = [column("v", "integer"), column("device", **{"from": "$.device"})]
    found = read([record, {"device": "d2"}, {"data": {"rows": []}}], columns=columns, rows="data.rows")
    assert found.columns.to_pylist() == [{"v": 1, "device": "d1"}, {"v": 3, "device": "d1"}]
    assert found.places.tolist() == [0, 0]
    assert [(reject.index, reject.reason[:6]) for reject in found.rejects] == [(0, "row 2:"), (1, "there ")]


def test_a_record_may_be_an_array_itself() -> None:
    found = read([[{"v": 1}, {"v": 2}], {"v": 3}], columns=[column("v", "integer")], rows="$")
    assert found.columns.to_pylist() == [{"v": 1}, {"v": 2}]
    assert len(found.rejects) == 1


@pytest.mark.parametrize("more", [{}, {"rows": None, "time": {"from": "at"}}])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "tombstone"),
        (b"", "empty"),
        (b"\xef\xbb\xbf{}", "byte order mark (UTF-8)"),
        (b"\xff\xfe{\x00}\x00", "byte order mark (UTF-16)"),
        (b"\x00\x00\x00\x00\x07\x02abc", "schema registry's prefix (schema 7)"),
    ],
)
def test_what_is_no_json_has_a_reason_of_its_own(
    value: bytes | None, reason: str, more: dict[str, Any]
) -> None:
    found = read([value], columns=[column("k")], **more)
    assert [reason in each for each in reasons(found)] == [True]


def test_a_time_far_ahead_of_its_arrival_is_a_dead_letter_or_takes_the_arrivals() -> None:
    ahead_ms = NOW_MS + 50 * 60_000
    columns = [column("k")]
    refused = read([{"k": "a"}], at_ms=ahead_ms, columns=columns)
    assert refused.columns.num_rows == 0
    assert "more than 900 s after its arrival" in reasons(refused)[0]
    longer = read([{"k": "a"}], at_ms=ahead_ms, columns=columns, ahead_s=3600)
    assert longer.columns.num_rows == 1
    accepted = read([{"k": "a"}], at_ms=ahead_ms, columns=columns, ahead="arrival")
    assert accepted.times_us.tolist() == [NOW_MS * 1000]


@pytest.mark.parametrize("rows", [{}, {"rows": "$"}], ids=["plain", "array"])
def test_a_writer_that_gives_nanoseconds_for_milliseconds_gets_dead_letters(rows: dict[str, Any]) -> None:
    """The same in microseconds has more than 64 bits. It must neither wrap around nor stop the others."""
    value: Any = {"k": "a"}
    for at_ms in (NOW_MS * 1000, NOW_MS * 1_000_000, 2**63 - 1):
        found = read([[value] if rows else value], at_ms=at_ms, columns=[column("k")], **rows)
        assert "after its arrival" in reasons(found)[0]


def test_a_field_may_hold_the_local_time_of_any_zone() -> None:
    time = {"from": "at", "format": "ms"}
    rows = [{"at": NOW_MS + hours * 3_600_000} for hours in (0, 14, 25)]
    found = read(rows, columns=[column("at", "integer")], time=time)
    assert found.places.tolist() == [0, 1]
    assert "more than 86400 s after its arrival" in reasons(found)[0]


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=4),
    st.just([]),
    st.just({}),
)


@given(st.lists(st.fixed_dictionaries({}, optional={"n": _VALUES, "x": _VALUES, "k": _VALUES, "b": _VALUES})))
def test_arrow_and_python_read_the_same_of_plain_records(rows: list[dict[str, Any]]) -> None:
    """A record's rows do not depend on how many are read with it."""
    columns = [column("n", "integer"), column("x", "number"), column("k"), column("b", "boolean")]
    fast = read(list(rows), columns=columns)
    params = KafkaInParams.model_validate({"topic": "t", "columns": columns})
    raw = [json.dumps(row).encode() for row in rows]
    times = np.full(len(raw), NOW_MS)
    schema = KafkaIn(params).output_schema({})
    slow = _mapped(raw, times, schema, params.reading(), Beside(), no_registry)
    assert fast.columns.to_pylist() == slow.columns.to_pylist()
    assert fast.places.tolist() == slow.places.tolist()
    assert [reject.index for reject in fast.rejects] == [reject.index for reject in slow.rejects]
