"""Laws of the overview's curves: means per step, summed over sources, and nothing where nothing was told."""

from __future__ import annotations

import django

django.setup()

from webapp.monitoring.throughput import SPAN_MS, STEP_MS, summed  # noqa: E402

NOW_MS = 1_000 * STEP_MS + 3_000
LENGTH = SPAN_MS // STEP_MS


def at(steps_ago: int, rate: float | None, offset_ms: int = 0) -> dict[str, float | None]:
    """A point so many whole steps before the one that runs."""
    return {"t": (1_000 - steps_ago) * STEP_MS + offset_ms, "rows_out_per_s": rate}


def test_each_step_has_the_sum_of_its_sources_means() -> None:
    one = [at(1, 10.0), at(1, 20.0, 2_000), at(2, 4.0)]
    other = [at(1, 5.0)]
    assert summed([one, other], NOW_MS)[-2:] == [4.0, 20.0]


def test_a_step_of_which_nothing_is_known_is_none_and_not_zero() -> None:
    assert summed([], NOW_MS) == [None] * LENGTH
    assert summed([[at(2, None), at(1, 0.0)]], NOW_MS)[-2:] == [None, 0.0]


def test_of_a_source_that_runs_as_one_with_its_readers_what_it_reads_counts() -> None:
    point = {**at(1, None), "rows_in_per_s": 7.0}
    assert summed([[point]], NOW_MS)[-1] == 7.0


def test_the_step_that_runs_and_what_is_older_than_the_span_are_left_out() -> None:
    points = [at(0, 99.0), at(LENGTH, 1.0), at(LENGTH + 1, 99.0)]
    assert summed([points], NOW_MS) == [1.0, *[None] * (LENGTH - 1)]
