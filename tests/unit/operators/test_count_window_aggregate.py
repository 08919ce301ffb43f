"""Laws of the count window aggregate."""

import statistics

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.count_window_aggregate import CountWindowAggregate, CountWindowAggregateParams
from tests.unit.operators.conftest import at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="integer", x="number")


def rows(*values, k=7):
    return [(second, {"k": k, "x": value}) for second, value in enumerate(values)]


def average(size, **more):
    return {"size": size, "aggregates": [{"function": "avg", "column": "x", "as": "avg"}], **more}


def test_each_event_gives_the_average_of_the_last_n(operator, process):
    found = process(operator("count-window-aggregate", average(3)), rows(1.0, 2.0, 3.0, 10.0))
    assert [(row["avg"], row["_time"]) for row in found] == [(2.0, at(2)), (5.0, at(3))]


def test_partial_windows_are_emitted_only_when_asked(operator, process):
    found = process(operator("count-window-aggregate", average(3, partial=True)), rows(1.0, 2.0, 3.0))
    assert [row["avg"] for row in found] == [1.0, 1.5, 2.0]


def test_windows_that_follow_one_another(operator, process):
    found = process(operator("count-window-aggregate", average(2, every=2)), rows(1.0, 3.0, 5.0, 7.0, 9.0))
    assert [row["avg"] for row in found] == [2.0, 6.0]


def test_nulls_are_events_without_a_value(operator, process):
    params = {
        "size": 2,
        "aggregates": [
            {"function": "sum", "column": "x", "as": "sum"},
            {"function": "count", "column": "x", "as": "values"},
            {"function": "count", "as": "events"},
        ],
    }
    found = process(operator("count-window-aggregate", params), rows(1.0, None, None))
    assert [(r["sum"], r["values"], r["events"]) for r in found] == [(1.0, 1, 2), (None, 0, 2)]


def test_the_streams_key_is_the_default_and_is_handed_on(operator, process):
    chosen = operator("count-window-aggregate", average(1))
    assert chosen.output_schema({"in": SCHEMA}).names == ("k", "avg")
    resolved = CountWindowAggregate(chosen.resolve({"in": SCHEMA}))
    assert resolved.key_field() == "k"
    assert [row["k"] for row in process(resolved, rows(1.0))] == [7]
    assert chosen.output_schema({"in": schema_of(x="number")}).names == ("avg",)


def test_times_are_values_too_and_the_state_stays_json(operator, process):
    aggregates = [{"function": name, "column": "t", "as": name} for name in ("first", "max")]
    window = operator("count-window-aggregate", {"size": 2, "aggregates": aggregates})
    found = process(window, [(second, {"t": at(second)}) for second in (5, 9, 7)])
    assert [(row["first"], row["max"]) for row in found] == [(at(5), at(9)), (at(9), at(9))]


def test_missing_columns_are_told(operator, mismatch):
    assert mismatch(
        operator("count-window-aggregate", average(1, key="kk")), **{"in": schema_of(y="number")}
    ) == ["params.key", "params.aggregates[0].column"]


HUGE = 1.7e308


@pytest.mark.parametrize("function", ["avg", "sum", "stddev", "relative_variation"])
def test_a_result_too_large_for_a_number_is_null_and_the_window_moves_on(operator, process, function):
    params = {"size": 2, "aggregates": [{"function": function, "column": "x", "as": "y"}]}
    first = -HUGE / 2 if function == "relative_variation" else HUGE
    found = process(operator("count-window-aggregate", params), rows(first, HUGE, 3.0, 5.0))
    assert len(found) == 3
    assert found[0]["y"] is None
    assert found[-1]["y"] is not None


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), max_size=40), st.integers(1, 8), st.integers(1, 8))
def test_it_equals_a_plain_oracle(values, size, every):
    operator = CountWindowAggregate(CountWindowAggregateParams.model_validate(average(size, every=every)))
    found = keyed_output(operator, rows(*values))
    expected = [
        statistics.fmean(values[n - size : n]) for n in range(size, len(values) + 1) if n % every == 0
    ]
    assert [row["avg"] for row in found] == pytest.approx(expected, rel=1e-12, abs=1e-9)
