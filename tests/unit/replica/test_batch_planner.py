"""Tests which batches a follower is granted, and which rows tasks read between two boundaries."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch.gate_messages import FLUSH, TICK, KeepStates, Slice, TaskPart
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.output import LETTERS, BatchOutput, packed
from pipeline_runtime.batch.tasks import Tasks
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.journal.records import END_STAGE, TOPIC_IDS, Announce, Arm, Boundary, Claim, Commit
from pipeline_runtime.kafka.transactions import Fenced
from pipeline_runtime.model.desired import ClaimOrder, Directive, Takeover
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import Follow
from pipeline_runtime.replica import batch_planner as planner_module, release as release_module
from pipeline_runtime.replica.core import Abandon, Granted, at_sink, followed_from, next_followed
from pipeline_runtime.replica.input_offsets import MORE_RATIO, shares, slices_between
from pipeline_runtime.replica.state import ReplicaState
from tests.unit.replica.one_run import GROUP, SPEC, Arrived, OneRun, run_of, state
from tests.waiting import PATIENCE_S

SCHEMA = StreamSchema(fields=())
INPUTS = (
    GroupInput(index=0, source="a.out", schema=SCHEMA, topic="ta", partitions=2),
    GroupInput(index=1, source="b.out", schema=SCHEMA),
)


def followed(made: ReplicaState, start: int, *, coalesced: bool, rows_max: int = 100) -> int | None:
    boundary = next_followed(made.view, Seq(start), definition="1", coalesced=coalesced, rows_max=rows_max)
    return boundary.seq if boundary else None


@given(st.lists(st.integers(0, 60), max_size=12), st.data())
def test_exact_follows_batch_by_batch(rows: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows)))
    expected = start + 1 if start < len(rows) else None
    assert followed(state(rows), start, coalesced=False) == expected


@given(st.lists(st.integers(0, 60), max_size=12), st.data())
def test_coalesced_takes_as_many_whole_batches_as_fit(rows: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows)))
    got = followed(state(rows), start, coalesced=True)
    if start == len(rows):
        assert got is None
        return
    assert got is not None
    taken = rows[start:got]
    assert len(taken) == 1 or sum(taken) <= 100
    assert got == len(rows) or sum(rows[start : got + 1]) > 100


def test_a_batch_that_is_larger_than_the_limit_is_taken_alone() -> None:
    assert followed(state([500, 1]), 0, coalesced=True) == 1


@pytest.mark.parametrize("coalesced", [True, False])
def test_what_another_definition_has_processed_is_not_followed(coalesced: bool) -> None:
    made = ReplicaState()
    for seq, definition in enumerate(("old", "old", "new"), 1):
        made.view.apply(Commit(Epoch(1), Boundary(Seq(seq), {}, seq), 1, definition=definition))

    def end(start: int, definition: str) -> int | None:
        found = next_followed(made.view, Seq(start), definition=definition, coalesced=coalesced, rows_max=100)
        return found.seq if found else None

    assert end(0, "old") == (2 if coalesced else 1)
    assert end(0, "new") is None
    assert (end(2, "old"), end(2, "new")) == (None, 3)


def announced(rows: list[int], seq: int, epoch: int = 1) -> ReplicaState:
    made = state(rows)
    made.view.apply(Announce(Epoch(epoch), Boundary(Seq(seq), {"in-0": seq}, seq)))
    return made


@pytest.mark.parametrize("is_void", [False, True])
def test_who_has_claimed_behind_a_rewind_commits_nothing_upon_what_was_rewound(is_void: bool) -> None:
    """Two claimed at the same time. Who came second had caught up with what the first one's claim undid."""
    made = state([1, 1, 1])
    if is_void:
        made.view.apply(Claim(Epoch(2), "rewind", "a", rewind=Seq(1)))
    made.view.apply(Claim(Epoch(3), "restore", "b"))
    made.local = Seq(3)
    permit: Any = SimpleNamespace(epoch=made.view.granted)
    made.permit = permit
    run = run_of(made)
    let_go_when_it_waits(run, made)
    granted = run.planner._next()
    assert (granted and granted[1].seq) == (None if is_void else 4)
    # So the sink knows that whatever the journal has there by then is another's.
    assert made.ahead is not is_void


def test_an_owner_that_is_frozen_while_it_looks_for_rows_is_fenced_and_not_called_not_deterministic() -> None:
    """It wakes when its successor has committed another batch there, and grants its own all the same."""
    made = state([1, 1, 1])
    made.local = Seq(3)
    permit: Any = SimpleNamespace(epoch=made.view.granted, expect_commit=lambda: None)
    made.permit = permit
    other = Commit(Epoch(9), Boundary(Seq(4), {"in-0": 11}, 4))

    class Frozen(Arrived):
        def advance(self, ends: dict[str, int], now_ms: int, *, by_s: float, as_one: int) -> dict[str, int]:
            made.view.apply(Claim(Epoch(9), "successor", "b"))
            made.view.apply(other)
            return {"in-0": ends["in-0"] + 4, "in-1": ends["in-1"]}

    granted = run_of(made, offsets=Frozen()).planner._next()
    assert granted is not None
    assert granted.end.seq == 4
    found = at_sink(made.facts(SPEC), Granted(granted.end, made.ahead, made.view.granted))
    assert found == Abandon("seq 4 was committed by its new owner", fenced=True)


def test_an_owner_that_waits_for_a_schema_registry_processes_what_lies_before_that() -> None:
    made = state([1, 1, 1])
    made.local = Seq(3)
    permit: Any = SimpleNamespace(epoch=made.view.granted, expect_commit=lambda: None)
    made.permit = permit

    class Four(Arrived):
        def advance(self, ends: dict[str, int], now_ms: int, *, by_s: float, as_one: int) -> dict[str, int]:
            return {"in-0": ends["in-0"] + 4, "in-1": ends["in-1"]}

    run = run_of(made, offsets=Four())
    made.wait_for_registry({"in-0": 5})
    granted = run.planner._next()
    assert granted is not None
    assert (granted.start.ends["in-0"], granted.end.ends["in-0"]) == (3, 5)
    made.no_batch_runs()
    made.wait_for_registry({"in-0": 3})
    let_go_when_it_waits(run, made)
    assert run.planner._next() is None


def let_go_when_it_waits(run: OneRun, made: ReplicaState) -> None:
    def let_go(seen: int, timeout_s: float) -> int:
        run.batches.let_go()
        return seen

    made.wait_for_change = let_go  # type: ignore[method-assign]


def test_a_batch_that_was_chosen_while_the_group_was_given_away_is_not_granted() -> None:
    made = state([1, 1, 1])
    made.local = Seq(3)
    permit: Any = SimpleNamespace(epoch=made.view.granted)
    made.permit = permit

    class GivenAway(Arrived):
        def advance(self, ends: dict[str, int], now_ms: int, *, by_s: float, as_one: int) -> dict[str, int]:
            made.permit = None
            return super().advance(ends, now_ms, by_s=by_s, as_one=as_one)

    run = run_of(made, offsets=GivenAway())
    let_go_when_it_waits(run, made)
    assert run.planner._next() is None


@pytest.mark.parametrize(("round_trip_ms", "is_far"), [(400.0, True), (1.0, False)])
def test_what_a_far_successor_cannot_have_yet_is_left_to_it(round_trip_ms: float, is_far: bool) -> None:
    made = state([1, 1, 1])
    made.local = Seq(3)
    permit: Any = SimpleNamespace(epoch=Epoch(1), commit=lambda _: 1)
    made.permit, made.directive = permit, Directive(release="h")
    made.view.apply(Arm(Epoch(2), "token", "h", "b", round_trip_ms))
    made.measures.batch(1, 10.0, 100)
    asked: list[float] = []

    class Asked(Arrived):
        def advance(self, ends: dict[str, int], now_ms: int, *, by_s: float, as_one: int) -> dict[str, int]:
            asked.append(monotonic() - by_s)
            return super().advance(ends, now_ms, by_s=by_s, as_one=as_one)

    run = run_of(made, offsets=Asked())
    assert run.planner._next() is not None
    [before_s] = asked
    assert 0.4 <= before_s < PATIENCE_S if is_far else before_s == -math.inf


def test_spark_is_told_of_a_batch_before_there_are_rows_and_its_tasks_wait_for_them() -> None:
    made = state([])
    run = run_of(made)
    assert run.keeper.first_token() == 0
    assert run.keeper.next_token(7) == 8
    assert len(run.keeper.tasks_of(8)) == 1
    answers: list[object] = []
    task = threading.Thread(target=lambda: answers.append(run.keeper.slices_of(8, 0)), daemon=True)
    task.start()
    assert run.keeper.describe() is GROUP
    assert made.granted is None
    with made.changed:
        made.view.apply(Commit(Epoch(1), Boundary(Seq(1), {"in-0": 1}, 1), rows_in=1, definition="1"))
        made.tell()
    task.join(PATIENCE_S)
    assert answers == [[]]
    assert made.granted == 1
    assert not run.batches.let_go(), "it was granted"


def test_tasks_that_wait_are_let_go_and_what_they_waited_for_comes_to_nothing() -> None:
    made = state([])
    run = run_of(made)
    assert len(run.keeper.tasks_of(run.keeper.next_token(0))) == 1
    answers: list[object] = []
    tasks = [
        threading.Thread(target=lambda: answers.append(run.keeper.slices_of(1, 0)), daemon=True)
        for _ in range(2)
    ]
    for task in tasks:
        task.start()
    assert run.batches.let_go()
    for task in tasks:
        task.join(PATIENCE_S)
    assert answers == [None, None]
    assert run.keeper.next_token(1) == 1, "there is no next one"


def test_tasks_share_a_batch_in_its_order_as_large_as_the_one_before_was() -> None:
    made = state([1, 1])
    inputs = (GroupInput(index=0, source="a.out", schema=SCHEMA, topic="in", partitions=2),)

    class NoneAhead(Arrived):
        def records(self, *_: object) -> None:
            return None

    made.view.start = {"in-0": 0, "in-1": 0}
    run = run_of(made, inputs=inputs, offsets=NoneAhead(), tasks=Tasks(2, planned=True))
    made.view.commits[Seq(1)] = Commit(
        Epoch(1), Boundary(Seq(1), {"in-0": 9, "in-1": 8}, 1), rows_in=17, definition="1"
    )
    made.reads.rows = {(0, 0): 4_000, (0, 1): 4_000}
    assert run.keeper.tasks_of(run.keeper.next_token(0)) == [TaskPart(1, task) for task in (0, 1)]
    read = [[(item.partition, item.end) for item in run.keeper.slices_of(1, task) or ()] for task in (0, 1)]
    assert read == [[(0, 9)], [(1, 8)]]


def test_a_task_that_stays_is_given_one_batch_after_another_and_all_of_them_are_one_to_spark() -> None:
    made = state([])
    end = NotedEnd(made)
    run = run_of(made, tasks=Tasks(1), end=end)
    assert run.keeper.tasks_of(run.keeper.next_token(0)) == [TaskPart(1, 0)]
    for seq in (1, 2):
        with made.changed:
            made.view.apply(Commit(Epoch(1), Boundary(Seq(seq), {"in-0": seq}, seq), definition="1"))
            made.tell()
        assert run.keeper.slices_of(1, 0) == []
        run.keeper.part_processed(0, packed(BatchOutput({}, {}, LETTERS.empty_table(), {"a.out": 10 * seq})))
    assert end.ended == [(1, {"a.out": 10}), (2, {"a.out": 20})]
    assert run.batches.let_go(), "nothing is granted"
    assert run.keeper.slices_of(1, 0) is None


class NotedEnd:
    """In place of BatchEnd: takes note of what a batch has made."""

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self.ended: list[tuple[Seq, object]] = []

    def begin(self) -> None: ...

    def processed(self) -> None: ...

    def end(self, made: BatchOutput, boundary: Boundary, number: int, times: object) -> None:
        assert self._state.granted == boundary.seq
        self.ended.append((boundary.seq, made.counts))
        self._state.processed(boundary, ended=False)


def test_who_is_fenced_when_it_announces_says_so_and_lets_its_task_go() -> None:
    made = state([])
    run = run_of(made)

    def fenced() -> None:
        raise Fenced("another one")

    run.planner._next = fenced  # type: ignore[method-assign, assignment]
    assert run.keeper.slices_of(run.keeper.next_token(0), 0) is None
    assert isinstance(made.failure, Fenced)


@pytest.mark.parametrize("follow", ["exact", "coalesced"])
def test_who_is_to_rewind_does_not_follow_what_lies_behind_that(follow: Follow) -> None:
    """The checkpoint at 4 was damaged, and the one before it was taken."""
    made = state([1] * 6)
    made.order = ClaimOrder(id="rewind", over=Epoch(1), rewind=Seq(4))
    run, path = run_of(made, follow), [Seq(2)]
    while (boundary := followed_from(run.planner._facts(), path[-1])) is not None:
        path.append(boundary.seq)
    assert path == ([2, 4] if follow == "coalesced" else [2, 3, 4])


def test_a_batch_that_was_decided_elsewhere_delays_none_of_a_new_owner() -> None:
    """It may own by what the journal says before it follows the owner's last batch."""
    timing = run_of(state([1])).timing
    timing.begin_owning()
    timing.granted(own=False)
    assert timing.begins_at_s({"in-0": 1}, ending=False) <= monotonic()
    timing.granted(own=True)
    assert timing.begins_at_s({"in-0": 1}, ending=False) > monotonic()


@pytest.mark.parametrize("coalesced", [True, False])
def test_only_a_successor_runs_what_is_announced(coalesced: bool) -> None:
    made = announced([1, 1], 3)
    at_the_end = {"start": Seq(2), "definition": "1", "coalesced": coalesced, "rows_max": 100}
    assert next_followed(made.view, **at_the_end) is None
    boundary = next_followed(made.view, **at_the_end, ahead=True)
    assert boundary is not None
    assert boundary.seq == 3


def test_an_announced_batch_is_taken_together_with_those_before_it_where_that_is_the_same() -> None:
    view = announced([1, 1], 3).view
    coalesced = next_followed(view, Seq(0), definition="1", coalesced=True, rows_max=100, ahead=True)
    exact = next_followed(view, Seq(0), definition="1", coalesced=False, rows_max=100, ahead=True)
    assert coalesced is not None
    assert exact is not None
    assert (coalesced.seq, exact.seq) == (3, 1)


def test_an_announcement_of_another_epoch_or_of_no_next_batch_says_nothing() -> None:
    assert announced([1, 1], 3, epoch=2).view.announced is None
    assert announced([1, 1], 4).view.announced is None
    made = announced([1, 1], 3)
    made.view.apply(Claim(Epoch(2), "o2", "b"))
    assert made.view.announced is None


def test_coalesced_never_crosses_a_stage_of_the_end() -> None:
    made = state([1, 1, 0, 0], stages={3: 1, 4: 2})
    assert followed(made, 0, coalesced=True) == 2
    assert followed(made, 2, coalesced=True) == 3
    assert followed(made, 3, coalesced=True) == 4


def test_tasks_read_what_has_moved_and_nothing_else() -> None:
    start = {"ta-0": 5, "ta-1": 7, "b": {"row": 1}}
    end = {"ta-0": 5, "ta-1": 9, "b": {"row": 4}}
    assert slices_between(INPUTS, start, end, 42, flushes=True) == [
        Slice(input=0, partition=1, start=7, end=9, batch_time_ms=42),
        Slice(input=1, partition=0, start={"row": 1}, end={"row": 4}, batch_time_ms=42),
    ]
    assert slices_between(INPUTS, start, start, 42, flushes=True) == []


def test_tasks_are_told_which_topic_the_offsets_lie_in() -> None:
    start = {"ta-0": 5, "ta-1": 7, "b": 1, TOPIC_IDS: {"ta": "former"}}
    end = {**start, "ta-1": 9, TOPIC_IDS: {"ta": "present"}}
    [part] = slices_between(INPUTS, start, end, 42, flushes=False)
    assert part.topic_id == "former"


class Silent(Arrived):
    """Nothing ever comes."""

    waiting = False

    def advance(self, ends: dict[str, int], now_ms: int, *, by_s: float, as_one: int) -> dict[str, int]:
        return ends


@pytest.mark.parametrize("tick_ms", [None, 1])
def test_a_group_that_ticks_has_batches_although_nothing_comes(
    tick_ms: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_module, "LOOK_S", 0.01)
    made = state([1])
    made.local = Seq(1)
    made.permit = SimpleNamespace(epoch=Epoch(1))
    planner = run_of(made, offsets=Silent(), tick_ms=tick_ms).planner
    if tick_ms is None:
        ending = threading.Timer(0.2, lambda: (planner._over.set(), made.poke()))
        ending.start()
        assert planner.grant_next() is None
        return
    [tick] = planner.grant_next() or []
    assert tick.input == TICK
    assert made.span is not None
    start, end = made.span
    assert (end.seq, end.ends, end.batch_time_ms) == (2, start.ends, tick.batch_time_ms)


def test_a_group_that_ticks_is_told_when_each_batch_began_and_has_none_behind_its_end() -> None:
    start, end = {"ta-0": 5, "ta-1": 7, "b": 1}, {"ta-0": 6, "ta-1": 7, "b": 1}
    [rows, tick] = slices_between(INPUTS, start, end, 42, flushes=False, ticks=True)
    assert (rows.input, tick) == (0, Slice(TICK, 42))
    inputs = run_of(state([1]), tick_ms=1000).inputs
    assert inputs.tick_in_s({"in-0": 1}, since_s=0.25) == 0.75
    assert inputs.tick_in_s({"in-0": 1}, since_s=7.0) == 0
    assert inputs.tick_in_s({"in-0": 1, END_STAGE: 1}, since_s=7.0) == math.inf


def test_a_stage_of_the_end_is_a_flush_where_something_is_kept_back() -> None:
    start = {"ta-0": 5, "ta-1": 7, "b": {"row": 1}}
    end = {**start, END_STAGE: 1}
    assert slices_between(INPUTS, start, end, 42, flushes=True) == [Slice(FLUSH, 42)]
    assert slices_between(INPUTS, start, end, 42, flushes=False) == []


@given(
    st.dictionaries(st.text(max_size=4), st.integers(0, 10**6), min_size=1, max_size=6),
    st.integers(6, 30_000),
)
def test_a_batch_is_bounded_fair_and_never_starves_an_input(waiting: dict[str, int], rows_max: int) -> None:
    taken = shares(waiting, rows_max)
    assert taken.keys() == waiting.keys()
    assert all(0 <= taken[key] <= waiting[key] for key in waiting)
    assert sum(taken.values()) <= rows_max + rows_max // MORE_RATIO
    assert all(taken[key] >= 1 for key in waiting if waiting[key])
    if sum(waiting.values()) <= rows_max + rows_max // MORE_RATIO:
        assert taken == waiting
    else:
        assert sum(taken.values()) <= rows_max
        assert sum(taken.values()) > rows_max - 2 * len(waiting)


def test_what_another_group_has_written_in_one_full_batch_is_one_batch_here() -> None:
    rows, ends_of_transactions = 1500, 1
    assert shares({"in-0": rows + ends_of_transactions}, 1500) == {"in-0": 1501}
    assert shares({"in-0": 2 * 1501}, 1500) == {"in-0": 1500}, "more is left than the ends"


def test_who_has_released_plans_nothing_until_its_successor_has_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (release_module, planner_module):
        monkeypatch.setattr(module, "GIVE_WAY_S", PATIENCE_S)
    made = state([1])
    run = run_of(made)
    run.release.handover, run.release._released_at_s = "h", monotonic()
    takeover = Takeover(epoch=Epoch(2), by="release", order="h", node="b", at_ms=1)
    made.view.takeover = takeover
    assert run.release.gives_way
    answers: list[object] = []
    spark = threading.Thread(target=lambda: answers.append(run.keeper.next_token(0)), daemon=True)
    spark.start()
    with made.changed:
        assert answers == []
        made.view.takeover = takeover.model_copy(update={"first_commit_at_ms": 2})
        made.tell()
    spark.join(PATIENCE_S)
    assert answers == [1]
    assert not run.release.gives_way


def test_a_batch_that_is_granted_begins_with_what_the_last_committed_one_has_left(tmp_path: Path) -> None:
    KeyedState.create(tmp_path / "keyed")
    keyed = KeyedState(tmp_path / "keyed")
    made = state([1])
    made.local = Seq(1)
    run = run_of(made, keyed=keyed)
    assert run.keeper.states_of(["a"], 0) == [None]
    run.keeper.keep_states(KeepStates(["a"], [b"of a batch that came to nothing"], [-1], 0))
    made.view.apply(Commit(Epoch(1), Boundary(Seq(2), {"in-0": 2}, 2), definition="1"))
    assert run.keeper.slices_of(1, 0) == []
    keyed.seal()
    keyed.commit(Boundary(Seq(2), {"in-0": 2}, 2).to_json())
    assert run.keeper.states_of(["a"], 0) == [None]
