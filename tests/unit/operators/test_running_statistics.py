"""Laws of running statistics."""

import json
import statistics

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators.key_states import NOT_SET
from pipeline_runtime.operators.running_statistics import RunningStatistics, RunningStatisticsParams
from tests.unit.operators.conftest import Rejected, at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def rows(*pairs):
    return [(second, {"k": "a", "x": value}) for second, value in pairs]


def test_each_event_gives_the_statistics_so_far(operator, process):
    values = [4.0, 8.0, 6.0, 1.5]
    found = process(operator("running-statistics", {"column": "x"}), rows(*enumerate(values)))
    assert found[0]["stddev"] is None
    last = found[-1]
    assert (last["count"], last["minimum"], last["maximum"], last["_time"]) == (4, 1.5, 8.0, at(3))
    assert last["mean"] == pytest.approx(statistics.mean(values))
    assert last["stddev"] == pytest.approx(statistics.stdev(values))


def test_a_report_comes_with_the_first_event_after_it_was_due(operator, process):
    found = process(
        operator("running-statistics", {"column": "x", "every_s": 10}),
        rows((1, 1.0), (9, 3.0), (12, 5.0), (13, 7.0), (3600, 9.0)),
    )
    assert [(row["_time"], row["count"], row["mean"]) for row in found] == [
        (at(10), 2, 2.0),
        (at(20), 4, 4.0),
    ]


def test_a_reset_begins_anew(operator, process):
    found = process(
        operator("running-statistics", {"column": "x", "every_s": 10, "reset": True}),
        rows((1, 1.0), (11, 5.0), (21, 7.0)),
    )
    assert [(row["count"], row["mean"]) for row in found] == [(1, 1.0), (1, 5.0)]


def test_nulls_are_left_out_and_infinity_is_refused(operator, process):
    statistics_ = operator("running-statistics", {"column": "x"})
    assert [row["count"] for row in process(statistics_, rows((0, None), (1, 2.0)))] == [0, 1]
    with pytest.raises(Rejected, match="finite"):
        process(statistics_, rows((0, float("inf"))))


@pytest.mark.parametrize("values", [(1.7e308, 5.0, 6.0), (1.7e308, -1.7e308, 5.0, 6.0)])
@pytest.mark.parametrize("every_s", [0, 1])
def test_what_is_too_large_for_a_number_is_null_in_a_report_that_json_can_hold(
    operator, process, values, every_s
):
    params = {"column": "x", "every_s": every_s}
    found = process(operator("running-statistics", params), rows(*enumerate(values)))
    last = found[-1]
    assert (last["stddev"], last["maximum"]) == (None, 1.7e308)
    for row in found:
        json.dumps({**row, "_time": None}, allow_nan=False)


def test_the_streams_key_is_the_default_and_is_handed_on(operator, process):
    chosen = operator("running-statistics", {"column": "x"})
    assert chosen.output_schema({"in": SCHEMA}).names == (
        "k",
        "count",
        "mean",
        "stddev",
        "minimum",
        "maximum",
    )
    resolved = RunningStatistics(chosen.resolve({"in": SCHEMA}))
    assert (resolved.key_field(), process(resolved, rows((0, 1.0)))[0]["k"]) == ("k", "a")


def test_a_column_that_is_no_number_is_told(operator, mismatch):
    assert mismatch(operator("running-statistics", {"column": "k"}), **{"in": SCHEMA}) == ["params.column"]


def test_people_see_what_is_kept_and_when_it_is_reported(operator):
    statistics_ = operator("running-statistics", {"column": "x", "every_s": 10})
    kept = {"count": 1, "mean": 2.0, "squares": 0.0, "minimum": 2.0, "maximum": 2.0}
    assert statistics_.readable_state([*kept.values(), NOT_SET], {"in": SCHEMA}) == kept
    shown = statistics_.readable_state([*kept.values(), 1_795_860_000_000], {"in": SCHEMA})
    assert shown == {**kept, "reports_at": "2026-11-28 10:00:00 UTC"}


def expected_reports(given_rows, every_s, reset):
    """The plain oracle of one key: keeps all values, and asks Python's `statistics` at each report."""
    reports, values, due_s = [], [], None
    for second, value in given_rows:
        if every_s and due_s is not None and second >= due_s:
            reports.append((due_s, list(values)))
            values, due_s = ([] if reset else values), None
        if value is not None:
            values.append(value)
        if not every_s:
            reports.append((second, list(values)))
        elif due_s is None:
            due_s = (second // every_s + 1) * every_s
    return [
        (
            at(second),
            len(values),
            pytest.approx(statistics.fmean(values), abs=1e-9) if values else None,
            pytest.approx(statistics.stdev(values), abs=1e-6) if len(values) > 1 else None,
            min(values, default=None),
            max(values, default=None),
        )
        for second, values in reports
    ]


@given(
    st.lists(
        st.tuples(st.integers(-2, 12), st.sampled_from("abc"), st.one_of(st.none(), st.floats(-1e3, 1e3))),
        max_size=40,
    ),
    st.sampled_from([0, 1, 10]),
    st.booleans(),
)
def test_it_equals_a_plain_oracle(steps, every_s, reset):
    second, by_key, given_rows = 100, {}, []
    for step, key, value in steps:
        second += step  # a row may be late
        given_rows.append((second, {"k": key, "x": value}))
        by_key.setdefault(key, []).append((second, value))
    params = RunningStatisticsParams(column="x", every_s=every_s, reset=reset, key="k")
    found = keyed_output(RunningStatistics(params), given_rows)
    for key, of_key in by_key.items():
        mine = [row for row in found if row["k"] == key]
        assert [
            (row["_time"], row["count"], row["mean"], row["stddev"], row["minimum"], row["maximum"])
            for row in mine
        ] == expected_reports(of_key, every_s, reset)
