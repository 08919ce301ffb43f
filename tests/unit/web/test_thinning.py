"""The rows that a chart needs."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from hypothesis import given, strategies as st

from webapp.monitoring.thinning import POINTS_MAX, Drawn, Row, thinned

S = Drawn(("s",))


def rows_of(values: list[Any], each_ms: int = 1) -> list[Row]:
    return [Row(1_000_000 + index * each_ms, "", {"s": value}) for index, value in enumerate(values)]


def test_a_fast_sine_is_drawn_as_a_sine() -> None:
    sine = [math.sin(2 * math.pi * ms / 2_000) for ms in range(10_000)]
    kept = thinned(rows_of(sine), S, 10_000, 600)
    assert len(kept) <= 3 * 600 + 3
    # A straight line between two rows that are drawn is never far from the rows between them.
    for left, right in pairwise(kept):
        for index in range(left, right):
            share = (index - left) / (right - left)
            assert abs(sine[left] + share * (sine[right] - sine[left]) - sine[index]) < 0.06


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 50))
def test_each_pixel_keeps_its_least_its_greatest_and_its_last_row(values: list[float], each_ms: int) -> None:
    rows, span_ms, pixels = rows_of(values, each_ms), 300 * each_ms, 100
    kept = thinned(rows, S, span_ms, pixels)
    assert kept == sorted(set(kept))
    pixel_ms = max(1, span_ms // pixels)
    for pixel in {row.at_ms // pixel_ms for row in rows}:
        inside = [index for index, row in enumerate(rows) if row.at_ms // pixel_ms == pixel]
        drawn = [index for index in kept if index in inside]
        assert min(values[index] for index in drawn) == min(values[index] for index in inside)
        assert max(values[index] for index in drawn) == max(values[index] for index in inside)
        assert inside[-1] in drawn


def test_few_rows_are_all_kept() -> None:
    assert thinned(rows_of([1, 2, 9, 8], 1_000), S, 10_000, 600) == [0, 1, 2, 3]


def test_many_curves_share_the_points() -> None:
    rows = [Row(ms, f"k{ms % 20}", {"s": ms % 7, "of": f"k{ms % 20}"}) for ms in range(20_000)]
    kept = thinned(rows, Drawn(("s",), by="of"), 20_000, 2_000)
    assert len(kept) <= POINTS_MAX + 20 * 3
    assert {rows[index].key for index in kept} == {row.key for row in rows}


def test_what_is_no_number_is_left_out_and_a_mark_is_kept_where_it_turns() -> None:
    values: list[Any] = [{"s": None}, {"s": True}, {"s": float("nan")}, "broken", {"s": 1}]
    rows = [Row(index, "", value) for index, value in enumerate(values)]
    assert thinned(rows, S, 10, 100) == [4]
    marked = [Row(ms, "", {"s": 1, "high": 40 <= ms < 60}) for ms in range(100)]
    kept = thinned(marked, Drawn(("s",), marks=("high",)), 100_000, 100)
    assert {40, 60} <= set(kept)


def test_without_columns_all_numbers_of_the_first_row_are_drawn() -> None:
    rows = [Row(ms, "", {"text": "a", "yes": True, "v": -ms, "w": ms}) for ms in range(100)]
    kept = thinned(rows, Drawn(()), 100_000, 100)
    assert set(kept) == {0, 99}
