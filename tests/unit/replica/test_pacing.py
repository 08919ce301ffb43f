"""How long an owner pauses between batches."""

from __future__ import annotations

import pytest

from pipeline_runtime.kafka.clients import TRANSACTION_TIMEOUT_MS
from pipeline_runtime.model.spec import Pace
from pipeline_runtime.replica.core import LOCKSTEP_BATCHES
from pipeline_runtime.replica.pacing import (
    far_interval_ms,
    followed_interval_ms,
    gather_ms,
    interval_ms,
    lockstep_interval_ms,
    may_wait_ms,
    release_quiet_ms,
    stay_warm_s,
    took_ms,
)

PACE = Pace(interval_ms_min=50, interval_ms_max=1000, batch_rows_max=1000)


@pytest.mark.parametrize(
    ("cpu_ratio", "expected"), [(0.0, 50), (0.5, 50), (0.7, 287.5), (0.9, 1000), (1.0, 1000)]
)
def test_the_pause_grows_with_the_load(cpu_ratio: float, expected: float) -> None:
    assert interval_ms(PACE, cpu_ratio, planned=True) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cpu_ratio", "expected"), [(0.0, 50), (0.75, 50), (0.8, 58.333), (0.9, 125), (1.0, 125)]
)
def test_batches_that_cost_less_pause_less_on_a_busy_machine(cpu_ratio: float, expected: float) -> None:
    assert interval_ms(PACE, cpu_ratio) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("target_ms", "expected"), [(5, 50), (12, 50), (20, 80), (31.25, 125), (500, 125), (600_000, 125)]
)
def test_a_short_target_bounds_the_pause_on_a_busy_machine(target_ms: float, expected: float) -> None:
    assert interval_ms(PACE, 1.0, target_ms=target_ms) == pytest.approx(expected)
    assert interval_ms(PACE, 1.0, planned=True, target_ms=target_ms) == 1000, "such a batch costs too much"


@pytest.mark.parametrize(("waiting", "expected"), [(0, 1000), (500, 525), (1000, 50), (50_000, 50)])
def test_nobody_pauses_before_a_full_batch_however_busy_the_machine(waiting: int, expected: float) -> None:
    assert interval_ms(PACE, 1.0, waiting, planned=True) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("target_ms", "batch_ms", "expected"),
    [(500, 40, 460), (500, 0, 500), (20, 40, 0), (20, 5, 15)],
)
def test_a_row_waits_as_long_as_its_target_allows(target_ms: int, batch_ms: float, expected: float) -> None:
    assert may_wait_ms(target_ms, batch_ms) == expected


@pytest.mark.parametrize(
    ("wait_ms", "expected"),
    [
        (None, 40),  # nobody knows when its rows came
        (300, 40),  # they came late, and waited less than they might have
        (490, 40),
        (530, 80),  # its thread was woken 40 ms late
        (900, 140),  # the machine was busy: no more than a fifth of the target counts
    ],
)
def test_a_batch_allows_for_what_earlier_ones_took_beyond_their_wait(
    wait_ms: float | None, expected: float
) -> None:
    assert took_ms(40, wait_ms, 450, 500) == expected


@pytest.mark.parametrize(("target_ms", "expected"), [(20, 2), (500, 50), (60_000, 100)])
def test_rows_are_fetched_together_for_a_small_part_of_the_target(target_ms: int, expected: float) -> None:
    assert gather_ms(target_ms) == expected


@pytest.mark.parametrize(("batch_ms", "expected"), [(0, 0), (200, 400), (1800, 3600), (8000, 4000)])
def test_a_follower_is_left_half_of_the_time_also_where_batches_are_slow(
    batch_ms: float, expected: float
) -> None:
    assert followed_interval_ms(PACE, batch_ms) == expected


@pytest.mark.parametrize(("batch_ms", "expected"), [(0, 50), (20, 50), (200, 300), (8000, 1000)])
def test_announced_batches_leave_time_but_never_wait_for_a_slow_first_batch(
    batch_ms: float, expected: float
) -> None:
    assert lockstep_interval_ms(PACE, batch_ms) == expected


@pytest.mark.parametrize(("round_trip_ms", "expected"), [(1, 50), (100, 135), (5000, 1000)])
def test_a_far_successor_has_the_time_to_ask_again(round_trip_ms: float, expected: float) -> None:
    assert far_interval_ms(PACE, round_trip_ms) == pytest.approx(expected)


@pytest.mark.parametrize(("batch_ms", "expected"), [(0, 250), (50, 250), (200, 600), (8000, 1000)])
def test_a_release_without_a_batch_waits_a_little(batch_ms: float, expected: float) -> None:
    assert release_quiet_ms(batch_ms) == expected


def test_no_release_waits_for_a_transaction_that_is_opened_anew() -> None:
    longest_release_s = (LOCKSTEP_BATCHES + 1) * lockstep_interval_ms(PACE, 8000) / 1000
    assert stay_warm_s(False) + longest_release_s <= stay_warm_s(True) < TRANSACTION_TIMEOUT_MS / 1000
