"""Values of an OPC UA server as rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors.opcua_rows import (
    Change,
    Image,
    has_dropped,
    missed_before,
    plain,
    record,
    rows_of,
    time_us_of,
)
from pipeline_runtime.connectors.opcua_values import fitting
from pipeline_runtime.operators.opcua import OpcUaConnection, OpcUaIn, OpcUaInParams

UNCERTAIN, BAD = 0x4090_0000, 0x808C_0000


def test_changes_of_one_time_are_one_row_and_rows_are_in_the_order_of_time() -> None:
    rows = rows_of(
        [Change("b", 2, 0, 20), Change("a", 1, 0, 10), Change("b", 3, 0, 10), Change("a", 4, 0, 10)]
    )
    assert [(row.time_us, row.values) for row in rows] == [
        (10, {"a": 1, "b": 3}),
        (10, {"a": 4}),
        (20, {"b": 2}),
    ]


@pytest.mark.parametrize(
    ("last", "number", "missed"),
    [(None, 5, 0), (1, 2, 0), (1, 4, 2), (2**32 - 1, 1, 0), (2**32 - 1, 2, 1), (9, 9, 0), (9, 1, 0)],
)
def test_messages_that_are_missing_are_known_by_their_numbers(
    last: int | None, number: int, missed: int
) -> None:
    assert missed_before(last, number) == missed


@pytest.mark.parametrize("status", [UNCERTAIN, BAD])
def test_a_value_that_is_not_good_is_null_and_its_row_has_the_worst_status(status: int) -> None:
    [row] = rows_of([Change("a", 1, status, 10), Change("b", 2, 0, 10)])
    assert (row.values, row.status) == ({"a": None, "b": 2}, status)


def test_rows_repeat_the_last_values_if_they_are_to() -> None:
    changes = rows_of([Change("a", 1, BAD, 10), Change("b", 2, 0, 20), Change("a", 3, 0, 30)])
    last = Image("last")
    completed = [last.completed(row) for row in changes]
    assert [(row.values, row.status) for row in completed] == [
        ({"a": None}, BAD),
        ({"a": None, "b": 2}, BAD),
        ({"a": 3, "b": 2}, 0),
    ]
    assert [Image("empty").completed(row) for row in changes] == changes


class _State(IntEnum):
    RUNNING = 3


@pytest.mark.parametrize(
    ("value", "is_"),
    [
        (1.5, 1.5),
        (float("nan"), None),
        (float("inf"), None),
        (True, True),
        (_State.RUNNING, 3),
        ("ü", "ü"),
        (b"\x01\xff", "01ff"),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
        ([1.0, float("nan")], "[1.0, null]"),
        (SimpleNamespace(Text="Rot", Locale="de"), "Rot"),
    ],
)
def test_values_are_as_json_has_them(value: Any, is_: Any) -> None:
    assert plain(value) == is_


def test_a_record_is_read_by_the_element() -> None:
    params = OpcUaInParams.model_validate(
        {"connection": "s", "quality": "q", "columns": [{"name": "time", "node": "ns=2;i=5"}]}
    )
    [row] = rows_of([Change("time", 1.5, 0, 10)])
    whole = json.loads(record(row, "Good"))
    reading = OpcUaIn(params).reading()

    def at(path: Any) -> Any:
        found = whole
        for step in path:
            found = found[step]
        return found

    assert [at(each.path) for each in reading.columns] == [1.5, "Good"]
    assert reading.time is not None
    assert at(reading.time.path) == 10


def test_the_source_time_counts_to_the_microsecond_before_the_servers() -> None:
    source = datetime(2026, 3, 1, 7, 0, 0, 123457, tzinfo=timezone(timedelta(hours=1)))
    server = datetime(2026, 3, 1, 6, 0, 1)  # noqa: DTZ001 as the library has them: UTC, and without saying so
    expected = int(datetime(2026, 3, 1, 6, tzinfo=UTC).timestamp()) * 1_000_000
    assert time_us_of((source, server)) == expected + 123_457
    assert time_us_of((None, server)) == expected + 1_000_000
    assert time_us_of((None,)) is None


def test_a_status_says_that_values_were_dropped() -> None:
    assert has_dropped(0x0000_0480)
    assert not has_dropped(0x0000_0400)
    assert not has_dropped(0)


@pytest.mark.parametrize(
    "node", ["i=85", "ns=2;s=Press 1.T; x=3", "ns=3;g=09087e75-8e5e-499b-954f-f2a9603db28a"]
)
def test_a_node_id_in_its_usual_writing_is_taken(node: str) -> None:
    OpcUaInParams.model_validate({"connection": "s", "columns": [{"name": "a", "node": node}]})


@pytest.mark.parametrize("node", ["Press.T", "ns=2", "ns=2;i=x", "ns=2;s=", "s=a\n"])
def test_another_writing_is_refused(node: str) -> None:
    with pytest.raises(ValidationError):
        OpcUaInParams.model_validate({"connection": "s", "columns": [{"name": "a", "node": node}]})


def test_more_samples_than_a_server_keeps_are_refused() -> None:
    given = {"connection": "s", "columns": [{"name": "a", "node": "i=1"}], "publish_ms": 60_000}
    assert OpcUaInParams.model_validate({**given, "sample_ms": 100}).queue == 1200
    with pytest.raises(ValidationError, match="sample less often"):
        OpcUaInParams.model_validate({**given, "sample_ms": 1})


def test_signing_needs_a_certificate_and_its_key() -> None:
    with pytest.raises(ValidationError, match="needs an own certificate"):
        OpcUaConnection.model_validate({"host": "h", "security": "sign"})


@pytest.mark.parametrize(
    ("value", "type_", "is_"),
    [
        (3, "Double", 3.0),
        (3.0, "Int16", 3),
        (-128, "SByte", -128),
        (255, "Byte", 255),
        (2**64 - 1, "UInt64", 2**64 - 1),
        (1, "Boolean", True),
        (True, "Int32", 1),
        (False, "String", "false"),
        (1.5, "String", "1.5"),
        ("ü", "LocalizedText", "ü"),
    ],
)
def test_a_value_is_written_in_the_type_of_its_node(value: Any, type_: str, is_: Any) -> None:
    fits = fitting(value, type_)
    assert fits == is_
    assert type(fits) is type(is_)


@pytest.mark.parametrize(
    ("value", "type_", "why"),
    [
        (3.5, "Int16", "is no whole number"),
        (32_768, "Int16", "does not fit into Int16"),
        (-1, "UInt32", "does not fit into UInt32"),
        (float("nan"), "Int64", "is no Int64"),
        (float("inf"), "Int64", "is no Int64"),
        ("3", "Int16", "is no Int16"),
        ("3", "Double", "is no Double"),
        ("1", "Boolean", "is no Boolean"),
        (2, "Boolean", "is no Boolean"),
        (1, "DateTime", "is no DateTime"),
        (1e300, "Float", "does not fit into Float"),
        (10**400, "Double", "does not fit into Double"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_reason(value: Any, type_: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        fitting(value, type_)
