"""Laws of the change against a baseline."""

import statistics

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators import look_back
from pipeline_runtime.operators.baseline_change import BaselineChange, BaselineChangeParams
from tests.unit.operators.conftest import Rejected, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")
ORACLE = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "first": lambda values: values[0],
    "minimum": min,
    "maximum": max,
}


def rows(*values):
    return [(index, {"k": "a", "x": value}) for index, value in enumerate(values)]


@pytest.mark.parametrize(
    ("baseline", "change"),
    [("first", 50.0), ("mean", 20.0), ("median", 20.0), ("minimum", 50.0), ("maximum", 0.0)],
)
def test_a_value_is_compared_with_those_before_it(operator, process, baseline, change):
    chosen = operator("baseline-change", {"column": "x", "window_s": 60, "baseline": baseline})
    found = process(chosen, rows(10.0, 15.0, 15.0))
    assert found[0] | {"_time": None} == {
        "k": "a",
        "x": 10.0,
        "_time": None,
        "baseline": None,
        "change_percent": None,
    }
    assert found[2]["change_percent"] == pytest.approx(change)


def test_a_window_has_an_end_and_a_baseline_needs_values(operator, process):
    chosen = operator("baseline-change", {"column": "x", "window_s": 2, "min_count": 2})
    found = process(chosen, rows(10.0, 20.0, 40.0, None, 80.0, 1.0))
    assert [row["baseline"] for row in found] == [None, None, 10.0, None, None, None]
    zero = process(operator("baseline-change", {"column": "x"}), rows(0.0, 5.0))
    assert [row["change_percent"] for row in zero] == [None, None]


def test_what_is_too_much_is_rejected_until_older_ones_have_left(operator, monkeypatch):
    monkeypatch.setattr(look_back, "KEPT_MAX", 2)
    chosen = operator("baseline-change", {"column": "x", "window_s": 10})
    with pytest.raises(Rejected, match="TooManyKept"):
        keyed_output(chosen, rows(1.0, 2.0, 3.0))
    assert len(keyed_output(chosen, [*rows(1.0, 2.0), (11, {"k": "a", "x": 3.0})])) == 3


def test_a_late_row_looks_back_from_its_own_time_and_a_clock_ahead_harms_nobody(
    operator, process, monkeypatch
):
    chosen = operator("baseline-change", {"column": "x", "window_s": 60})
    timed = [(100, 1.0), (50, 2.0), (105, 4.0), (111, 8.0), (10**9, 9.0), (112, 16.0)]
    found = process(chosen, [(second, {"k": "a", "x": value}) for second, value in timed])
    # 50 s is within 60 s of 105 and not of 111; what is from far ahead is of nobody's past.
    assert [row["baseline"] for row in found] == [None, None, 2.0, 1.0, None, None]
    monkeypatch.setattr(look_back, "KEPT_MAX", 3)
    ahead = [(10**9, {"x": 1.0}), *((second, {"x": 1.0}) for second in range(0, 1000, 50))]
    assert len(keyed_output(chosen, ahead)) == 21


def test_a_mean_that_is_too_large_is_none(operator, process):
    chosen = operator("baseline-change", {"column": "x", "window_s": 60, "baseline": "mean"})
    assert [row["baseline"] for row in process(chosen, rows(1.7e308, 1.7e308, 5.0))] == [None, 1.7e308, None]


def test_what_does_not_fit_is_told(operator, mismatch):
    assert mismatch(operator("baseline-change", {"column": "k", "key": "y"}), **{"in": SCHEMA}) == [
        "params.column",
        "params.key",
    ]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.floats(1, 1e6))), max_size=30),
    st.sampled_from(sorted(ORACLE)),
    st.integers(1, 12),
)
def test_it_equals_a_plain_oracle(steps, baseline, window_s):
    now, timed = 0, []
    for step, value in steps:
        now += step
        timed.append((now, value))
    operator = BaselineChange(BaselineChangeParams(column="x", window_s=window_s, baseline=baseline))
    found = keyed_output(operator, [(second, {"k": "a", "x": value}) for second, value in timed])
    for index, (second, value) in enumerate(timed):
        before = [v for t, v in timed[:index] if v is not None and t >= second - window_s]
        expected = ORACLE[baseline](before) if before and value is not None else None
        assert found[index]["baseline"] == expected
        if expected is not None:
            assert found[index]["change_percent"] == pytest.approx(100 * (value / expected - 1), abs=1e-6)
