"""When an owner begins a batch by the latency that it is to keep, and when it fetches."""

from __future__ import annotations

from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.model.desired import Directive
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.schema import StreamSchema
from tests.unit.replica.one_run import Arrived, OneRun, run_of, state

START = Boundary(Seq(1), {"in-0": 1}, 1)


def owner_at(
    oldest_at_s: float | None, target_ms: int, inputs: tuple[GroupInput, ...] = (), **directive: Any
) -> OneRun:
    made = state([1])
    made.directive = Directive(latency_ms=target_ms, **directive)
    offsets = Arrived()
    offsets.oldest_at_s = oldest_at_s
    run = run_of(made, offsets=offsets, inputs=inputs)
    run.timing._paced_from_s = 1.0  # it has run a batch
    return run


def due_at_s(run: OneRun, start: Boundary = START) -> float:
    ending = run.inputs.next_stage(start.ends, run.state.view.ended) != start.ends
    return run.timing.due_at_s(start.ends, ending=ending)


def test_a_batch_begins_when_its_oldest_row_would_be_late_else() -> None:
    run = owner_at(100.0, 500)
    assert due_at_s(run) == pytest.approx(100.45)
    run.timing._runs_ms.extend([10.0] * 18 + [40.0] * 2)
    assert due_at_s(run) == pytest.approx(100.41)
    run.timing._runs_ms.extend([800.0] * 40)
    assert due_at_s(run) == pytest.approx(99.95), "it cannot be in time: at once"


def test_what_shall_not_wait_does_not() -> None:
    assert due_at_s(owner_at(None, 500)) == 0.0, "where it is not known when they came"
    assert due_at_s(owner_at(100.0, 500, release="handover")) == 0.0
    run = owner_at(100.0, 500)
    run.timing.begin_owning()
    assert due_at_s(run) == 0.0


def test_the_end_of_the_inputs_does_not_wait_but_the_end_of_one_of_them_changes_nothing() -> None:
    inputs = tuple(
        GroupInput(index, f"in-{index}.out", StreamSchema(fields=()), topic="in" if index == 0 else "other")
        for index in range(2)
    )
    run = owner_at(100.0, 500, inputs=inputs)
    start = Boundary(Seq(1), {"in-0": 1, "other-0": 1}, 1)
    run.state.view.ended["in-0"] = Seq(1)
    assert due_at_s(run, start) == pytest.approx(100.45)
    run.state.view.ended["other-0"] = Seq(1)
    assert due_at_s(run, start) == 0.0


def test_a_source_of_the_group_is_asked_each_second_at_least() -> None:
    run = owner_at(None, 60_000)
    run.inputs.offsets.has_sources = True
    run.timing._granted_at_s = 50.0
    assert due_at_s(run) == pytest.approx(51.0)
    run.timing.finished(full=True)
    assert due_at_s(run) == 0.0


def fetching_rests_until_s(run: OneRun) -> float:
    offsets: Any = run.inputs.offsets
    return float(offsets.rests_until_s)


def test_nothing_is_fetched_from_when_an_urgent_batch_begins_until_its_records_are_written() -> None:
    run = owner_at(100.0, 10)
    run.state.permit = SimpleNamespace(is_far=False)  # type: ignore[assignment]
    run.timing.granted(own=True)
    assert fetching_rests_until_s(run) > monotonic()
    run.timing.written()
    assert fetching_rests_until_s(run) == 0.0
    run.timing.granted(own=True)
    run.timing.finished(full=False)
    assert fetching_rests_until_s(run) == 0.0, "it came to nothing"


def test_in_a_pause_of_an_urgent_group_rows_are_fetched_shortly_before_its_end() -> None:
    run = owner_at(100.0, 50)
    run.state.permit = SimpleNamespace(is_far=False)  # type: ignore[assignment]
    run.timing.pauses(200.0)
    assert fetching_rests_until_s(run) == pytest.approx(199.996)


@pytest.mark.parametrize(
    ("target_ms", "is_far", "directive"),
    [(500, False, {}), (10, True, {}), (10, False, {"release": "handover"})],
)
def test_other_owners_fetch_also_while_a_batch_runs(
    target_ms: int, is_far: bool, directive: dict[str, str]
) -> None:
    run = owner_at(100.0, target_ms, **directive)
    run.state.permit = SimpleNamespace(is_far=is_far)  # type: ignore[assignment]
    run.timing.granted(own=True)
    run.timing.pauses(200.0)
    assert fetching_rests_until_s(run) == 0.0


def test_who_follows_fetches_all_the_time() -> None:
    run = owner_at(100.0, 10)
    run.state.permit = SimpleNamespace(is_far=False)  # type: ignore[assignment]
    run.timing.pauses(200.0)
    run.timing.followed()
    run.timing.granted(own=False)
    assert fetching_rests_until_s(run) == 0.0


def test_rows_that_fill_a_batch_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    run = owner_at(100.0, 60_000)
    assert due_at_s(run) == pytest.approx(159.9)
    monkeypatch.setattr(Arrived, "full", lambda *_: True)
    assert due_at_s(run) == 0.0


def test_an_owner_that_has_full_batches_one_after_the_other_takes_two_as_one() -> None:
    timing = owner_at(100.0, 500).timing
    as_one = []
    for full in (False, True, True, True, True, False, True):
        as_one.append(timing.batches_as_one)
        timing.granted(own=True)
        timing.finished(full=full)
    assert as_one == [1, 1, 1, 1, 2, 2, 1]
    timing.granted(own=False)
    timing.finished(full=True)
    assert timing.batches_as_one == 1, "a new owner's first batch is as small as ever"


@pytest.mark.parametrize(
    ("directive", "rows"),
    [(Directive(), 2), (Directive(release="handover"), 1), (Directive(followed=True), 1)],
)
def test_in_a_release_or_before_a_follower_each_batch_is_as_small_as_ever(
    directive: Directive, rows: int
) -> None:
    made = state([1])
    made.local = Seq(1)
    made.directive = directive
    permit: Any = SimpleNamespace(epoch=made.view.granted, is_far=False)
    made.permit = permit
    run = run_of(made, offsets=Arrived())
    for _ in range(3):
        run.timing.granted(own=True)
        run.timing.finished(full=True)
    assert run.planner.grant_next() == []
    span = run.state.newest_span
    assert span is not None
    assert span.end.ends["in-0"] - span.start.ends["in-0"] == rows
