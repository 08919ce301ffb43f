from __future__ import annotations

from hypothesis import given, strategies as st

from pipeline_runtime.checkpoint.manifest import CheckpointSummary
from pipeline_runtime.checkpoint.retention import HOUR_MS, Retention, retained
from pipeline_runtime.model.ids import Epoch, Seq


def summary(seq: int, at_ms: int) -> CheckpointSummary:
    return CheckpointSummary(
        group="g", seq=Seq(seq), epoch=Epoch(1), version="1", node="n", created_at_ms=at_ms, ends={},
        bytes_total=0, bytes_new=0,
    )  # fmt: skip


def test_the_newest_few_and_the_first_of_each_hour_of_a_day_are_kept() -> None:
    now_ms = 100 * HOUR_MS
    every_ten_minutes = [summary(number, number * HOUR_MS // 6) for number in range(1, 600)]
    kept = retained(every_ten_minutes, now_ms, Retention(newest=5))
    assert kept >= {599, 598, 597, 596, 595}
    assert len(kept) == 5 + 24
    hourly = {seq for seq in kept if seq < 595}
    assert all(number % 6 == 0 for number in hourly - {min(hourly)})
    assert min(hourly) == 457, "as old as a day allows"


def test_without_hours_only_the_newest_count_and_one_always_stays() -> None:
    old = [summary(number, number) for number in range(1, 9)]
    assert retained(old, 1000 * HOUR_MS, Retention(newest=1, hours=0)) == {8}
    assert retained(old, 1000 * HOUR_MS, Retention(newest=3, hours=24)) == {6, 7, 8}


def test_a_young_group_keeps_its_first_checkpoint_so_that_nothing_young_is_trimmed() -> None:
    every_five_seconds = [summary(number, HOUR_MS + number * 5_000) for number in range(1, 100)]
    assert retained(every_five_seconds, HOUR_MS + 500_000, Retention(newest=2)) == {1, 98, 99}


@given(
    steps=st.lists(st.integers(0, 3 * HOUR_MS), max_size=60),
    newest=st.integers(1, 6),
    later=st.integers(0, HOUR_MS),
)
def test_retention_is_idempotent_and_never_empty(steps: list[int], newest: int, later: int) -> None:
    at = 0
    checkpoints = []
    for seq, step in enumerate(steps, start=1):
        at += step
        checkpoints.append(summary(seq, at))
    policy = Retention(newest=newest)
    kept = retained(checkpoints, at + later, policy)
    assert {checkpoint.seq for checkpoint in checkpoints[-newest:]} <= kept
    left = [checkpoint for checkpoint in checkpoints if checkpoint.seq in kept]
    assert retained(left, at + later, policy) == kept
    assert len(kept) <= newest + 25
