"""Tests how many tasks process a batch, which task has which keys, and how tasks that stay come together."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from pipeline_runtime.batch.gate_messages import Slice
from pipeline_runtime.batch.tasks import ROWS_A_TASK, KeysShared, Tasks
from tests.waiting import PATIENCE_S, wait_until


def count(tasks: Tasks) -> int:
    return len(tasks.planned(1))


def test_there_are_as_many_as_the_batch_before_was_large_and_no_more_than_partitions() -> None:
    tasks = Tasks(3, planned=True)
    found = []
    for rows in (0, ROWS_A_TASK - 1, ROWS_A_TASK, 9 * ROWS_A_TASK, 1):
        tasks.processed(rows)
        assert not tasks.are_too_few, "each of their batches is planned separately"
        found.append(count(tasks))
    assert found == [1, 1, 2, 3, 1]


def test_those_that_stay_end_where_more_are_needed_and_do_not_become_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    tasks = Tasks(8)
    tasks.processed(1)
    assert not tasks.are_too_few
    tasks.processed(8 * ROWS_A_TASK)
    assert tasks.are_too_few
    assert count(tasks) == 2, "one for each CPU"
    tasks.processed(1)
    assert not tasks.are_too_few
    assert count(tasks) == 2


def test_each_has_whole_partitions_in_order() -> None:
    tasks = Tasks(2)
    tasks.processed(ROWS_A_TASK)
    assert count(tasks) == 2
    slices = [Slice(0, 1, partition) for partition in range(5)]
    assert [tasks.share(slices, 0), tasks.share(slices, 1)] == [slices[:2], slices[2:]]
    assert [tasks.share(slices[:1], 0), tasks.share(slices[:1], 1)] == [[], slices[:1]]


def two() -> Tasks:
    tasks = Tasks(2)
    tasks.processed(ROWS_A_TASK)
    assert count(tasks) == 2
    return tasks


def test_a_key_is_one_tasks_until_that_has_left_it_and_the_batch_has_ended() -> None:
    tasks = two()
    tasks.take(["a", "b"], 0)
    tasks.take(["c"], 1)
    tasks.take(["a"], 0)
    with pytest.raises(KeysShared, match="'b' are in several partitions"):
        tasks.take(["d", "b"], 1)
    tasks.processed(1)
    with pytest.raises(KeysShared):
        tasks.take(["b"], 1)
    tasks.leave(["a", "b"])
    with pytest.raises(KeysShared):
        tasks.take(["b"], 1)
    tasks.take(["a"], 0)  # it has asked again
    tasks.processed(1)
    tasks.take(["b"], 1)
    with pytest.raises(KeysShared):
        tasks.take(["a"], 1)


def test_tasks_that_begin_have_no_keys() -> None:
    tasks = two()
    tasks.take(["a"], 0)
    assert count(tasks) == 2
    tasks.take(["a"], 1)


def test_where_spark_plans_each_batch_a_key_is_one_tasks_in_a_batch() -> None:
    tasks = Tasks(2, planned=True)
    tasks.processed(ROWS_A_TASK)
    assert count(tasks) == 2
    tasks.take(["a"], 0)
    with pytest.raises(KeysShared):
        tasks.take(["a"], 1)
    tasks.processed(1)
    tasks.take(["a"], 1)


def test_where_keys_have_states_a_partition_is_always_the_same_tasks() -> None:
    tasks = Tasks(5, partitions=5)
    tasks.processed(ROWS_A_TASK)
    assert count(tasks) == 2
    slices = [Slice(0, 1, partition) for partition in range(5)]
    for some in (slices, slices[2:], slices[::2], slices[:1], slices[4:]):
        assert tasks.share(some, 0) == [part for part in some if part.partition < 3]
        assert tasks.share(some, 1) == [part for part in some if part.partition >= 3]


def test_the_last_of_those_that_stay_ends_the_batch_with_what_all_have_made() -> None:
    tasks, ended = two(), list[list[bytes]]()
    first = threading.Thread(target=lambda: tasks.meet(1, b"one", fail), daemon=True)
    first.start()
    wait_until(lambda: tasks._made, "the first to come")
    tasks.meet(0, b"nought", lambda made: ended.append(list(made)))
    first.join(PATIENCE_S)
    assert not first.is_alive()
    assert ended == [[b"nought", b"one"]]


def fail(made: Sequence[bytes]) -> None:
    raise ValueError(f"{len(made)} have met")


def test_of_an_end_that_fails_the_last_one_is_told_and_nobody_waits() -> None:
    tasks = two()
    first = threading.Thread(target=lambda: tasks.meet(0, b"nought", fail), daemon=True)
    first.start()
    wait_until(lambda: tasks._made, "the first to come")
    with pytest.raises(ValueError, match="2 have met"):
        tasks.meet(1, b"one", fail)
    first.join(PATIENCE_S)
    assert not first.is_alive()


def test_who_waits_for_another_is_let_go_when_the_query_ends() -> None:
    tasks = two()
    first = threading.Thread(target=lambda: tasks.meet(0, b"nought", fail), daemon=True)
    first.start()
    wait_until(lambda: tasks._made, "the first to come")
    tasks.close()
    first.join(PATIENCE_S)
    assert not first.is_alive()
