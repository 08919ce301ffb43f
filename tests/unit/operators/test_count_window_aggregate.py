"""Laws of the count window aggregate."""

import math
import random
import statistics
from datetime import datetime
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators import count_windows
from pipeline_runtime.operators.aggregates import Function, evaluate
from pipeline_runtime.operators.count_window_aggregate import CountWindowAggregate, CountWindowAggregateParams
from pipeline_runtime.operators.sliding import squares, sums
from pipeline_runtime.trial import processed
from tests.chosen import examples
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


@settings(max_examples=20)
@given(st.lists(st.floats(-1e6, 1e6), max_size=40), st.integers(1, 8), st.integers(1, 8))
def test_it_equals_a_plain_oracle(values, size, every):
    operator = CountWindowAggregate(CountWindowAggregateParams.model_validate(average(size, every=every)))
    found = keyed_output(operator, rows(*values))
    expected = [
        statistics.fmean(values[n - size : n]) for n in range(size, len(values) + 1) if n % every == 0
    ]
    assert [row["avg"] for row in found] == pytest.approx(expected, rel=1e-12, abs=1e-9)


ALL = schema_of(k="string", x="number", n="integer", s="string", b="boolean", t="timestamp")
_NUMERIC = ("avg", "sum", "stddev", "relative_variation")
_AGGREGATES = [
    {"function": function.value, "column": name, "as": f"{function.value}_{name}"}
    for name in "xnsbt"
    for function in Function
    if name in "xn" or function.value not in _NUMERIC
]
_floats = st.sampled_from([0.1, 0.3, -0.7, 1e16, 1.0, -1e16, 3e-324, 1e-170]) | st.floats(-1e6, 1e6)
_odd = st.sampled_from([0.0, -0.0, 1.7e308, -1.7e308, 1e160])


def _rows(floats, wholes):
    columns = {
        "k": st.sampled_from("ab"),
        "x": st.none() | floats,
        "n": st.none() | wholes,
        "s": st.sampled_from([None, "a", "z", "ä"]),
        "b": st.sampled_from([None, True, False]),
        "t": st.none() | st.integers(-3, 3).map(at),
    }
    return st.lists(st.fixed_dictionaries(columns), max_size=30)


def _said(values):
    """Each value to its last digit."""
    return [str(value) if isinstance(value, datetime) else repr(value) for value in values]


@settings(max_examples=examples(40))
@given(
    _rows(_floats, st.integers(-5, 5))
    | _rows(_floats | _odd, st.integers(-5, 5) | st.sampled_from([2**62, -(2**62) - 1])),
    st.integers(1, 7),
    st.integers(1, 4),
    st.booleans(),
    st.lists(st.integers(0, 30), max_size=2),
)
def test_it_gives_to_the_last_bit_what_each_window_gives_alone(some, size, every, partial, cuts):
    said = {"size": size, "every": every, "partial": partial, "key": "k"}
    params = CountWindowAggregateParams.model_validate({**said, "aggregates": _AGGREGATES})
    timed = [{**row, "_time": at(second)} for second, row in enumerate(some)]
    edges = [0, *sorted(cuts), len(timed)]
    batches = [{"in": timed[first:end]} for first, end in pairwise(edges)]
    expected, came = [], {"a": [], "b": []}
    for row in timed:
        mine = came[row["k"]]
        mine.append(row)
        window = mine[-size:]
        if len(mine) % every == 0 and (partial or len(window) == size):
            made = [
                evaluate(item.function, [each[item.column] for each in window], len(window))
                for item in params.aggregates
            ]
            expected.append(_said([row["k"], *made, row["_time"]]))
    for least in (count_windows.ARRAYS_MIN, -(10**9)):
        with patch.object(count_windows, "ARRAYS_MIN", least):
            found = processed(CountWindowAggregate(params), batches, {"in": ALL}).rows
        assert [_said(row.values()) for row in found] == expected


def test_of_the_two_zeros_the_first_one_is_the_least_and_the_greatest(operator, process):
    aggregates = [{"function": name, "column": "x", "as": name} for name in ("min", "max")]
    chosen = operator("count-window-aggregate", {"size": 2, "aggregates": aggregates})
    with patch.object(count_windows, "ARRAYS_MIN", -(10**9)):
        found = process(chosen, rows(0.0, -0.0, 0.0))
    assert [repr((row["min"], row["max"])) for row in found] == ["(0.0, 0.0)", "(-0.0, -0.0)"]


def test_a_sum_of_integers_that_is_too_large_is_null(operator, process):
    chosen = operator(
        "count-window-aggregate", {"size": 2, "aggregates": [{"function": "sum", "column": "n", "as": "sum"}]}
    )
    with patch.object(count_windows, "ARRAYS_MIN", -(10**9)):
        found = process(chosen, [(second, {"n": n}) for second, n in enumerate([2**62, 2**62, -1, 5])])
    assert [row["sum"] for row in found] == [None, 2**62 - 1, 4]


def test_long_windows_are_exact_too():
    """Their sums are put together of many parts; some depend on more digits than two numbers have."""
    tie = [1.0, 2.0**-53, 2.0**-120]
    assert sums(np.array(tie), np.array([0]), np.array([3])).tolist() == [1 + 2.0**-52]
    far = np.array([math.sqrt(each) for each in tie])
    given, one = np.ones(3, bool), np.array([1])
    assert squares(far, given, np.zeros(1), one - 1, one).tolist() == [1.0]
    assert squares(far, given, np.zeros(1), one - 1, 3 * one).tolist() == [math.fsum((far * far).tolist())]
    chance = random.Random(1)
    values = [chance.uniform(-1, 1) * 10 ** chance.randrange(0, 40, 10) for _ in range(400)]
    firsts = np.arange(300)
    for length in (1, 2, 3, 63, 64, 100):
        counts = np.minimum(np.full(300, length), 400 - firsts)
        expected = [math.fsum(values[first : first + length]) for first in range(300)]
        assert sums(np.array(values), firsts, counts).tolist() == expected
