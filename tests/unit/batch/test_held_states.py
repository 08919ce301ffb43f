"""Tests that a task holds the same states as the replica, and that no two tasks hold the same key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch.gate_messages import KeepStates, Request, Slice
from pipeline_runtime.batch.held_states import HeldStates, TaskStates, size_of
from pipeline_runtime.batch.tasks import ROWS_A_TASK, KeysShared, Tasks

KEYS = [None, "", "a", "b", "c", "ü"]
TWO = 2


class Replica:
    """What a replica does with states: changes count once the batch is committed."""

    def __init__(self) -> None:
        self.committed: dict[str | None, bytes] = {}
        self.pending: dict[str | None, bytes | None] = {}
        self.sizes: list[tuple[int | None, int]] = []  # as the task has said, and as they are
        self.asked: list[str | None] = []
        self.tasks = Tasks(TWO, partitions=TWO)

    def ask(self, request: Request[Any]) -> Any:
        return request.answered_by(self)  # type: ignore[arg-type]

    def tell(self, request: Request[None]) -> None:
        self.ask(request)

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]:
        self.tasks.take(keys, task)
        self.asked += keys
        return [self.committed.get(key) for key in keys]

    def keep_states(self, kept: KeepStates) -> None:
        self.tasks.take(kept.keys, kept.task)
        assert not self.pending.keys() & set(kept.keys), "each key once in a batch"
        for key, state, size in zip(kept.keys, kept.states, kept.sizes, strict=True):
            self.pending[key] = state
            self.sizes.append((size, size_of(self.committed.get(key))))
        self.tasks.leave(kept.left)

    def commit(self) -> None:
        for key, state in self.pending.items():
            self.committed.pop(key, None)
            if state is not None:
                self.committed[key] = state
        self.pending = {}
        self.tasks.processed(ROWS_A_TASK)


def change(states: TaskStates, new: dict[str | None, bytes | None]) -> None:
    before = states.get(list(new))
    states.keep(list(new), list(new.values()), [size_of(data) for data in before])


_states = st.none() | st.binary(max_size=900)
_batches = st.lists(
    st.tuples(st.dictionaries(st.sampled_from(KEYS), _states), st.lists(st.sampled_from(KEYS), unique=True)),
    max_size=30,
)


@given(_batches, st.sampled_from([0, 2_000, 5_000, 1 << 20]))
def test_a_task_reads_what_was_committed_however_little_it_holds(batches: Any, bytes_max: int) -> None:
    replica, held = Replica(), HeldStates(bytes_max)
    for changes, read in batches:
        states = TaskStates(replica, 0, held)
        assert states.get(read) == [replica.committed.get(key) for key in read]
        change(states, changes)
        replica.commit()
        assert held._young_bytes <= bytes_max // 2
    assert all(said == right for said, right in replica.sizes)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(KEYS), _states), max_size=6), max_size=20),
    st.sampled_from([2_000, 1 << 20]),
)
def test_a_key_in_two_partitions_is_noticed_before_its_state_is_wrong(batches: Any, bytes_max: int) -> None:
    """Also when its rows come in different batches."""
    replica = Replica()
    replica.tasks.processed(ROWS_A_TASK)
    assert len(replica.tasks.planned(1)) == TWO
    helds = [HeldStates(bytes_max), HeldStates(bytes_max)]
    right: dict[str | None, bytes | None] = {}
    for batch in batches:
        changes: list[dict[str | None, bytes | None]] = [{}, {}]
        for partition, key, state in batch:
            changes[partition][key] = state
        try:
            for task, (held, new) in enumerate(zip(helds, changes, strict=True)):
                states = TaskStates(replica, task, held)
                assert states.get(list(new)) == [right.get(key) for key in new]
                change(states, new)
        except KeysShared:
            assert {key for _, key, _ in batch}
            return  # the run ends; the next one has one task
        for new in changes:
            right.update(new)
        replica.commit()
        assert {key: state for key, state in right.items() if state is not None} == replica.committed


def test_what_is_held_is_not_asked_for_again() -> None:
    replica, held = Replica(), HeldStates()
    for _ in range(3):
        change(TaskStates(replica, 0, held), {"a": b"1", "b": None})
        replica.commit()
    assert replica.asked == ["a", "b"], "that there is no state is held, too"


def test_a_task_that_does_not_stay_asks_in_each_batch() -> None:
    replica = Replica()
    for _ in range(3):
        change(TaskStates(replica, 0, None), {"a": b"1"})
        replica.commit()
    assert replica.asked == ["a"] * 3


def test_what_is_used_is_held_and_the_rest_goes_and_is_told() -> None:
    replica, held = Replica(), HeldStates(2_000)
    for number in range(40):
        states = TaskStates(replica, 0, held)
        states.get(["always"])
        change(states, {f"k{number}": b"1"})
        replica.commit()
    assert replica.asked.count("always") == 1
    assert len(held._young) + len(held._old) < 12


@pytest.mark.parametrize("of_one_key", [False, True])
def test_two_tasks_may_share_a_batch_while_no_key_is_in_both(of_one_key: bool) -> None:
    replica = Replica()
    replica.tasks.processed(ROWS_A_TASK)
    replica.tasks.planned(1)
    helds = [HeldStates(), HeldStates()]
    for partition in (0, 1, 0):  # one batch after another, each with rows of one partition
        [task] = [each for each in range(TWO) if replica.tasks.share([Slice(0, 1, partition)], each)]
        assert task == partition
        key = "a" if of_one_key else f"of {partition}"
        states = TaskStates(replica, task, helds[task])
        if of_one_key and partition == 1:
            with pytest.raises(KeysShared):
                states.get([key])
            return
        change(states, {key: b"%d" % partition})
        replica.commit()


def test_keys_that_are_read_and_never_changed_are_left_too() -> None:
    """Else the replica would note, and the task would list, each key that there ever was."""
    replica = Replica()
    replica.tasks.processed(ROWS_A_TASK)
    replica.tasks.planned(1)
    held = HeldStates(4_000)
    for batch in range(100):
        TaskStates(replica, 0, held).get([f"{batch}-{key}" for key in range(10)])
        replica.commit()
        assert len(replica.tasks._keys) <= len(held._young) + len(held._old) <= 4_000 / 200 + 20
        assert not held._left
