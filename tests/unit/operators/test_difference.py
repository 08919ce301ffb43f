"""Laws of the difference."""

import math

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators.difference import Difference, DifferenceParams
from pipeline_runtime.trial import trial
from tests.unit.operators.conftest import at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def rows(*values):
    return [(2 * index, {"k": "a", "x": value}) for index, value in enumerate(values)]


@pytest.mark.parametrize(
    ("gives", "expected"),
    [
        ("lag", [None, 4.0, None, 6.0]),
        ("difference", [None, 2.0, None, -6.0]),
        ("percent", [None, 50.0, None, -100.0]),
        ("derivative", [None, 1.0, None, -1.5]),
    ],
)
def test_each_row_is_compared_with_the_one_before(operator, process, gives, expected):
    """Null is no row before: between the last two values are four seconds."""
    found = process(
        operator("difference", {"column": "x", "gives": gives, "name": "d"}), rows(4.0, 6.0, None, 0.0)
    )
    assert [row["d"] for row in found] == expected
    assert [row["x"] for row in found] == [4.0, 6.0, None, 0.0]


def test_what_has_no_answer_is_null(operator, process):
    percent = operator("difference", {"column": "x", "gives": "percent"})
    assert [row["difference"] for row in process(percent, rows(0.0, 5.0))] == [None, None]
    rate = operator("difference", {"column": "x", "gives": "derivative"})
    assert process(rate, [(1, {"x": 1.0}), (1, {"x": 2.0})])[1]["difference"] is None
    huge = process(operator("difference", {"column": "x"}), rows(-1.7e308, 1.7e308))
    assert huge[1]["difference"] is None


def test_a_value_that_is_none_is_rejected_alone(operator):
    rows = [{"_time": at(n), "k": "a", "x": value} for n, value in enumerate([1.0, math.inf, math.nan, 4.0])]
    found = trial(operator("difference", {"column": "x"}), rows, SCHEMA)
    assert [row["difference"] for row in found.rows] == [None, 3.0]
    assert len(found.rejected) == 2


def test_units_and_what_does_not_fit(operator, mismatch):
    schema = SCHEMA.model_copy(
        update={"fields": (SCHEMA.fields[0], SCHEMA.fields[1].model_copy(update={"unit": "W"}))}
    )
    units = {
        gives: operator("difference", {"column": "x", "gives": gives})
        .output_schema({"in": schema})
        .field("difference")
        .unit
        for gives in ("lag", "percent", "derivative")
    }
    assert units == {"lag": "W", "percent": "%", "derivative": "W/s"}
    assert mismatch(operator("difference", {"column": "k", "name": "x"}), **{"in": SCHEMA}) == [
        "params.column",
        "params.name",
    ]


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=30), st.integers(1, 5))
def test_it_equals_a_plain_oracle(values, back):
    found = keyed_output(Difference(DifferenceParams(column="x", periods=back)), rows(*values))
    known = [value for value in values if value is not None]
    differences = [None] * min(back, len(known)) + [b - a for a, b in zip(known, known[back:], strict=False)]
    rest = iter(differences)
    assert [row["difference"] for row in found] == [None if value is None else next(rest) for value in values]
