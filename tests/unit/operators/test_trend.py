"""Laws of the trend."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators import look_back
from pipeline_runtime.operators.trend import Trend, TrendParams
from tests.unit.operators.conftest import Rejected, at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def rows(*values):
    return [(index, {"k": "a", "x": value}) for index, value in enumerate(values)]


def test_a_line_through_points_on_a_line_is_that_line(operator, process):
    found = process(
        operator("trend", {"column": "x", "per": "minute", "key": "k"}), rows(1.0, 3.0, None, 7.0)
    )
    assert [row["count"] for row in found] == [2, 3]
    last = found[-1]
    assert (last["slope"], last["r_squared"]) == pytest.approx((120.0, 1.0))
    assert (last["line_from"], last["line_start"], last["line_end"]) == (
        at(0),
        pytest.approx(1.0),
        pytest.approx(7.0),
    )
    assert (last["k"], last["x"], last["_time"]) == ("a", 7.0, at(3))


def test_values_leave_the_window_and_a_line_needs_two_times(operator, process):
    chosen = operator("trend", {"column": "x", "window_s": 1})
    assert [row["count"] for row in process(chosen, rows(1.0, 2.0, 9.0))] == [2, 2]
    assert (
        process(operator("trend", {"column": "x"}), [(1, {"k": "a", "x": 1.0}), (1, {"k": "a", "x": 2.0})])
        == []
    )
    flat = process(operator("trend", {"column": "x", "min_count": 3}), rows(0.1, 0.1, 0.1))
    assert [(row["slope"], row["r_squared"], row["line_end"]) for row in flat] == [(0.0, None, 0.1)]


def test_milliseconds_count_and_a_late_row_looks_back_from_its_own_time(operator, process):
    chosen = operator("trend", {"column": "x", "window_s": 60, "per": "second"})
    [row] = process(chosen, [(0.001, {"x": 0.0}), (0.002, {"x": 1.0})])
    assert row["slope"] == pytest.approx(1000.0, rel=1e-12)
    late = process(chosen, [(50, {"x": 0.0}), (100, {"x": 9.0}), (60, {"x": 5.0})])
    assert [(row["_time"], row["count"], row["line_end"]) for row in late] == [
        (at(100), 2, pytest.approx(9.0)),
        (at(60), 2, pytest.approx(5.0)),
    ]
    assert process(chosen, [(n, {"x": (-1) ** n * 1.7e308}) for n in range(4)]) == []


def test_what_is_too_much_is_rejected(operator, monkeypatch):
    monkeypatch.setattr(look_back, "KEPT_MAX", 2)
    with pytest.raises(Rejected, match="TooManyKept"):
        keyed_output(operator("trend", {"column": "x"}), rows(1.0, 2.0, 3.0))


def test_units_and_what_does_not_fit(operator, mismatch):
    names = operator("trend", {"column": "x"}).output_schema({"in": SCHEMA}).names
    assert names == ("k", "x", "slope", "r_squared", "count", "line_from", "line_start", "line_end")
    assert mismatch(operator("trend", {"column": "k", "key": "y"}), **{"in": SCHEMA})[:2] == [
        "params.column",
        "params.key",
    ]


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.floats(-1e4, 1e4)), min_size=2, max_size=40),
    st.integers(1, 20_000),
)
def test_it_equals_numpys_least_squares(steps, window_s):
    times = np.cumsum([step for step, _ in steps])
    values = np.array([value for _, value in steps])
    operator = Trend(TrendParams(column="x", window_s=window_s, per="second"))
    given_rows = [(int(t), {"k": "a", "x": float(v)}) for t, v in zip(times, values, strict=True)]
    found = {row["_time"]: row for row in keyed_output(operator, given_rows)}
    for index, now in enumerate(times):
        window = (times <= now) & (times >= now - window_s)
        if window.sum() < 2:
            assert at(int(now)) not in found
            continue
        x, y = times[window] - times[index], values[window]
        design = np.vstack([x, np.ones(len(x))]).T
        (slope, height), *_ = np.linalg.lstsq(design, y, rcond=None)
        row = found[at(int(now))]
        assert row["count"] == window.sum()
        assert row["slope"] == pytest.approx(slope, rel=1e-6, abs=1e-7)
        assert row["line_end"] == pytest.approx(height, rel=1e-6, abs=1e-4)
        assert row["line_start"] == pytest.approx(slope * x[0] + height, rel=1e-6, abs=1e-4)
        spread = ((y - y.mean()) ** 2).sum()
        if spread > 1e-3:
            assert row["r_squared"] == pytest.approx(
                1 - ((y - design @ [slope, height]) ** 2).sum() / spread, abs=1e-5
            )
