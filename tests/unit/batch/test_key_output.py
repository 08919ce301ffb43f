"""Rows as a keyed processor is given them, and the rows that it makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor, OutputRow, Params, Row, Timers
from pipeline_runtime.trial import Outcome, at, trial

GIVEN = StreamSchema(
    fields=(
        Field(name="k", type=FieldType.STRING),
        Field(name="x", type=FieldType.NUMBER),
        Field(name="n", type=FieldType.INTEGER),
        Field(name="t", type=FieldType.TIMESTAMP),
    ),
    key="k",
)
NEW = Field(name="new", type=FieldType.NUMBER)
ROWS = [
    {"_time": at(n), "k": "ab"[n % 2], "x": None if n == 3 else n / 2, "n": n, "t": at(-n)} for n in range(8)
]
MakesRows = Callable[[Row], Iterable[OutputRow] | None]


class Making(KeyedProcessor):
    """Makes of each row what a function makes of it, after it has counted the row."""

    type, title, summary, category, icon = "making", "Making", "", "state", "hash"
    Params = Params
    outputs_of = StreamSchema(fields=(*GIVEN.fields, NEW), key="k")
    makes: MakesRows

    def key_field(self) -> str | None:
        return None

    def output_schema(self, inputs: Any) -> StreamSchema:
        return self.outputs_of

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Any:
        state["count"] = state.get("count", 0) + 1
        return type(self).makes(row)


def made(
    function: MakesRows, rows: list[dict[str, Any]] = ROWS, outputs: StreamSchema | None = None
) -> Outcome:
    given = {"makes": staticmethod(function), "outputs_of": outputs or Making.outputs_of}
    return trial(type("Making", (Making,), given)(Params()), rows, GIVEN)


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["k"]))


def test_a_row_has_its_columns_and_its_time() -> None:
    seen = []
    assert made(lambda row: seen.append((dict(row), row.time, row.time_ms, len(row)))).rows == []
    assert seen == [
        ({name: row[name] for name in GIVEN.names}, row["_time"], row["_time"].timestamp() * 1000, 4)
        for row in by_key(ROWS)
    ]


def test_a_column_that_the_row_does_not_have_is_an_error_of_that_row() -> None:
    assert set(made(lambda row: [row.plus(new=row["power"])]).rejected) == {"KeyError: 'power'"}


@pytest.mark.parametrize("value", [0.5, None, 3])
def test_a_row_with_further_values_is_the_same_as_a_copy_with_them(value: float | None) -> None:
    plus, copy = made(lambda row: [row.plus(new=value)]), made(lambda row: [{**row, "new": value}])
    assert plus == copy
    assert plus.rows == [{**row, "new": value} for row in by_key(ROWS)]


def test_a_value_may_stand_in_place_of_one_of_the_row() -> None:
    found = made(lambda row: [row.plus(n=7, x=1.5, _time=row.time + timedelta(seconds=1))]).rows
    assert found == [
        {**row, "n": 7, "x": 1.5, "new": None, "_time": row["_time"] + timedelta(seconds=1)}
        for row in by_key(ROWS)
    ]


def test_a_column_of_another_type_is_converted_and_one_that_the_output_lacks_is_left_out() -> None:
    outputs = StreamSchema(fields=(GIVEN.fields[0], Field(name="n", type=FieldType.NUMBER), NEW), key="k")
    found = made(lambda row: [row.plus(new=1.0)], outputs=outputs).rows
    assert [(row["k"], row["n"], type(row["n"])) for row in found] == [
        (row["k"], row["n"], float) for row in by_key(ROWS)
    ]
    assert set(found[0]) == {"k", "n", "new", "_time"}


def test_rows_of_every_kind_leave_in_the_order_in_which_they_were_made() -> None:
    def several(row: Row) -> Iterable[OutputRow]:
        yield {"k": row["k"], "new": 1.0}
        yield row.plus(new=2.0)
        if row["n"] % 3 == 0:
            yield {"new": 3.0}

    found = [(row["n"], row["new"]) for row in made(several).rows]
    expected = []
    for row in by_key(ROWS):
        expected += [(None, 1.0), (row["n"], 2.0), *([(None, 3.0)] if row["n"] % 3 == 0 else [])]
    assert found == expected


def test_when_one_of_a_rows_output_rows_does_not_fit_none_of_them_leaves() -> None:
    found = made(lambda row: [row.plus(new=1.0), row.plus(new="x" if row["n"] == 2 else 2.0)])
    assert [row["n"] for row in found.rows] == [0, 0, 4, 4, 6, 6, 1, 1, 3, 3, 5, 5, 7, 7]
    assert found.rejected == ["TypeError: the field new takes a number, not 'x'"]


def test_a_row_with_a_number_that_json_does_not_have_is_not_handed_on() -> None:
    rows = [{**row, "x": math.inf if row["n"] == 2 else row["x"]} for row in ROWS]
    reason = "ValueError: a number is infinite or NaN, which JSON does not have"
    assert made(lambda row: [row.plus(new=1.0)], rows).rejected == [reason]
    without = StreamSchema(fields=(GIVEN.fields[0], NEW), key="k")
    assert made(lambda row: [row.plus(new=1.0)], rows, without).rejected == []


def test_a_row_without_an_event_time_is_rejected_alone() -> None:
    rows = [{**row, "_time": None if row["n"] == 2 else row["_time"]} for row in ROWS]
    found = made(lambda row: [row.plus(new=1.0)], rows)
    assert [row["n"] for row in found.rows] == [0, 4, 6, 1, 3, 5, 7]
    assert found.rejected == ["the row has no event time"]
