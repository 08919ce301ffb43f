"""An owner's next batch begins while the one before it is committed. It is tentative until then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_runtime.batch.gate_messages import KeepStates
from pipeline_runtime.batch.output import LETTERS, BatchOutput, packed
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.journal.records import Claim, Commit
from pipeline_runtime.kafka.transactions import Fenced
from pipeline_runtime.model.desired import Directive
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.batches import Stopped
from pipeline_runtime.replica.state import ReplicaState
from tests.unit.replica.one_run import Arrived, OneRun, one_run
from tests.waiting import PATIENCE_S, wait_until

NOTHING = bytes(packed(BatchOutput({}, {}, LETTERS.empty_table(), {})))


class Waiting(Arrived):
    """More rows wait than are read ahead."""

    is_full = True

    def full(self, ends: object) -> bool:
        return self.is_full

    def measured(self, rows: int, size: int) -> None: ...


class SlowPermit:
    """Commits when it is told to."""

    epoch = Epoch(1)
    is_far = False

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.asked = threading.Semaphore(0)
        self.answered = threading.Semaphore(0)
        self.error: Exception | None = None

    def commit(self, records: list[Commit], outputs: object = (), *, written: object = None) -> int:
        self.asked.release()
        assert self.answered.acquire(timeout=PATIENCE_S)
        if self.error is not None:
            raise self.error
        self.commits += records
        return 1

    def expect_commit(self) -> None: ...


class Owner:
    """One run of an owner, whose first batch has been processed and is being committed."""

    def __init__(self, path: Path) -> None:
        KeyedState.create(path / "keyed")
        self.path = path / "keyed"
        self.keyed = KeyedState(self.path)
        self.state = ReplicaState()
        self.state.view.apply(Claim(Epoch(1), "o", "a", {"in-0": 0}))
        self.permit = SlowPermit()
        permit: Any = self.permit
        self.state.own(permit)
        self.offsets = Waiting()
        group = SimpleNamespace(sinks={})
        self.run: OneRun = one_run(self.state, offsets=self.offsets, keyed=self.keyed, group=group)
        assert self.keeper.slices_of(1, 0) == []
        self.process(1, rows=10)

    @property
    def keeper(self) -> Any:
        return self.run.keeper

    def process(self, seq: int, rows: int) -> None:
        """What a task does with a batch: it counts its rows, and keeps the state of one key."""
        self.state.task_has_read((0, 0), rows, [], [])
        self.keeper.keep_states(KeepStates(["k"], [b"%d" % seq], [None], 0))
        self.keeper.part_processed(0, NOTHING)

    def stored(self) -> list[tuple[str, bytes]]:
        """What others see of the state."""
        return self.keyed.look("", "", lambda _: True, most=9, keys_max=9)[0]

    def commit(self, seq: int) -> None:
        """The broker answers the open commit."""
        self.permit.answered.release()
        wait_until(lambda: self.state.local == seq, f"{seq} to be committed")


@pytest.fixture
def owner(tmp_path: Path) -> Any:
    made = Owner(tmp_path)
    yield made
    for _ in range(3):
        made.permit.answered.release()
    made.run.batches.let_go()
    made.run.batches.close()
    made.keyed.close()


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def test_the_next_batch_runs_on_what_the_last_one_has_left_and_nobody_else_sees_that(owner: Owner) -> None:
    assert owner.keeper.slices_of(1, 0) == [], "the next one is granted at once"
    assert (owner.state.local, owner.state.granted) == (0, 1)
    assert owner.keeper.states_of(["k"], 0) == [b"1"]
    assert owner.keeper.states_between("", "z") == [("k", b"1")]
    assert owner.keeper.keys_between("", "z", 9) == ["k"]
    assert (owner.stored(), owner.keyed.end) == ([], None)
    owner.commit(1)
    assert (owner.state.granted, owner.state.committing, owner.state.tentative) == (2, False, None)
    assert owner.stored() == [("k", b"1")]


def test_batches_are_committed_one_after_another_with_their_own_rows(owner: Owner) -> None:
    assert owner.keeper.slices_of(1, 0) == []
    second, _ = in_thread(lambda: owner.process(2, rows=20))
    owner.commit(1)
    second.join(PATIENCE_S)
    assert owner.keeper.slices_of(1, 0) == []
    owner.commit(2)
    assert [(each.seq, each.rows_in) for each in owner.permit.commits] == [(1, 10), (2, 20)]
    assert [each.boundary.ends["in-0"] for each in owner.permit.commits] == [1, 2]
    assert owner.permit.commits[1].totals.rows_in == 30
    assert owner.stored() == [("k", b"2")]


def test_a_batch_that_comes_to_nothing_takes_the_next_one_with_it(owner: Owner) -> None:
    assert owner.keeper.slices_of(1, 0) == []
    second, found = in_thread(lambda: owner.process(2, rows=20))
    owner.permit.error = Fenced("another one")
    owner.permit.answered.release()
    second.join(PATIENCE_S)
    assert [type(each) for each in found] == [Stopped]
    assert isinstance(owner.state.failure, Fenced)
    assert (owner.permit.commits, owner.state.local, owner.stored()) == ([], 0, [])
    assert owner.keeper.slices_of(1, 0) is None, "nothing follows"
    assert owner.keeper.next_token(1) == 1
    assert owner.run.planner.next_start.seq == 0, "neither of them counts"


def test_at_most_one_batch_is_tentative(owner: Owner) -> None:
    assert owner.keeper.slices_of(1, 0) == []
    second, _ = in_thread(lambda: owner.process(2, rows=20))
    assert owner.permit.asked.acquire(timeout=PATIENCE_S)
    owner.commit(1)
    second.join(PATIENCE_S)
    assert (owner.state.granted, owner.state.tentative) == (2, None)
    owner.commit(2)
    assert [each.seq for each in owner.permit.commits] == [1, 2], "the second one has waited for the first"


@pytest.mark.parametrize("why", ["few rows wait", "it is to release", "it is paused", "it is to stop"])
def test_otherwise_the_next_batch_waits_for_the_commit(
    owner: Owner, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    match why:
        case "few rows wait":
            owner.offsets.is_full = False
        case "it is to release":
            owner.state.direct(Directive(release="h"), exact=True)
        case "it is paused":
            owner.state.pause_since(1)
        case _:
            owner.state.drain()
    waits = threading.Event()
    for_change = owner.state.wait_for_change

    def wait_for_change(seen: int, timeout_s: float) -> int:
        waits.set()
        return for_change(seen, timeout_s)

    monkeypatch.setattr(owner.state, "wait_for_change", wait_for_change)
    task, found = in_thread(lambda: owner.keeper.slices_of(1, 0))
    assert waits.wait(PATIENCE_S)
    assert owner.state.tentative is None
    owner.commit(1)
    if why in ("few rows wait", "it is to release"):
        task.join(PATIENCE_S)
        assert (found, owner.state.granted) == ([[]], 2)
    else:
        assert owner.state.granted is None, "it is drained"


def test_an_owner_that_is_to_release_commits_a_batch_before_it_begins_the_next(owner: Owner) -> None:
    """Also if it is told so while a batch runs ahead: that one still ends."""
    assert owner.keeper.slices_of(1, 0) == []
    owner.state.direct(Directive(release="h"), exact=True)
    owner.commit(1)
    assert owner.permit.asked.acquire(timeout=PATIENCE_S)
    second, _ = in_thread(lambda: owner.process(2, rows=20))
    assert owner.permit.asked.acquire(timeout=PATIENCE_S)
    assert second.is_alive(), "it is answered after the commit"
    assert not owner.state.committing
    owner.commit(2)
    second.join(PATIENCE_S)
    assert owner.state.granted is None


def test_the_run_ends_after_the_commit_and_without_what_was_begun_behind_it(owner: Owner) -> None:
    assert owner.keeper.slices_of(1, 0) == []
    assert owner.permit.asked.acquire(timeout=PATIENCE_S)
    assert owner.run.batches.let_go() is False
    closing, _ = in_thread(owner.run.batches.close)
    owner.commit(1)
    closing.join(PATIENCE_S)
    with pytest.raises(Stopped):
        owner.process(2, rows=20)
    assert [each.seq for each in owner.permit.commits] == [1]
    assert (owner.stored(), owner.state.local) == ([("k", b"1")], Seq(1))
