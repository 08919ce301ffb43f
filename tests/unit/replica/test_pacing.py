"""How long an owner pauses between batches."""

from __future__ import annotations

import pytest

from pipeline_runtime.model.spec import Pace
from pipeline_runtime.replica.pacing import interval_ms

PACE = Pace(interval_ms_min=50, interval_ms_max=1000, batch_rows_max=1000)


@pytest.mark.parametrize(
    ("cpu_ratio", "expected"), [(0.0, 50), (0.5, 50), (0.71, 525), (0.92, 1000), (1.0, 1000)]
)
def test_the_pause_grows_with_the_load(cpu_ratio: float, expected: float) -> None:
    assert interval_ms(PACE, cpu_ratio) == pytest.approx(expected)


@pytest.mark.parametrize(("waiting", "expected"), [(0, 1000), (500, 525), (1000, 50), (50_000, 50)])
def test_nobody_pauses_before_a_full_batch_however_busy_the_machine(waiting: int, expected: float) -> None:
    assert interval_ms(PACE, 1.0, waiting) == pytest.approx(expected)
