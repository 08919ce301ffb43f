"""Counting and timing."""

from __future__ import annotations

from hypothesis import given, strategies as st

from pipeline_runtime.model.spec import Pace
from pipeline_runtime.replica.measures import Measures, percentile
from pipeline_runtime.replica.pacing import interval_ms


def test_no_values_have_no_percentile() -> None:
    assert percentile([], 0.5) is None


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values_with_so_many_below(values: list[float], ratio: float) -> None:
    found = percentile(values, ratio)
    assert found in values
    assert sum(value <= found for value in values) >= ratio * len(values)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 500), st.integers(500, 5000))
def test_the_pause_never_shrinks_as_the_machine_fills(a: float, b: float, low: int, high: int) -> None:
    pace = Pace(interval_ms_min=low, interval_ms_max=high)
    less, more = interval_ms(pace, min(a, b)), interval_ms(pace, max(a, b))
    assert low <= less <= more <= high


def test_the_first_output_is_kept_and_the_last_one_moves_on() -> None:
    measures = Measures()
    measures.committed(0, {}, at_ms=10, latency_ms=None)
    assert (measures.first_output_at_ms, measures.last_output_at_ms) == (None, None)
    measures.committed(2, {"a.out": 20, "a.late": 0}, at_ms=20, latency_ms=5.0)
    measures.committed(3, {"a.out": 30}, at_ms=30, latency_ms=7.0)
    assert (measures.first_output_at_ms, measures.last_output_at_ms) == (20, 30)
    assert measures.stream_bytes_total == {"a.out": 50, "a.late": 0}
    assert list(measures.latency_ms) == [5.0, 7.0]


def test_what_a_batch_usually_takes_is_of_no_more_rows_than_it_usually_has() -> None:
    measures = Measures()
    for rows_in, took_ms in ((0, 5.0), (30, 10.0), (60, 30.0)):
        measures.batch(rows_in, took_ms, 30)
    assert list(measures.batch_ms) == [5.0, 10.0, 30.0]
    assert list(measures.usual_ms) == [5.0, 10.0, 15.0]
