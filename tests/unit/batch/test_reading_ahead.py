"""A thread reads ahead beside the one that runs batches, and never uses a reader at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.batch import portions
from pipeline_runtime.batch.portions import WAIT_MS, PortionReader
from pipeline_runtime.batch.reading_ahead import ReadingAhead
from tests.unit.batch.test_portions import INSIDE, Partition, reader_of, records_of, what_is_in
from tests.waiting import wait_until

RECORDS = records_of([(b'{"n":%d}' % offset, 1, None) for offset in range(1, 60)])


@pytest.fixture
def thread() -> Iterator[ReadingAhead]:
    ahead = ReadingAhead()
    yield ahead
    ahead.stop()


class Gated(Partition):
    """Reads ahead once for each permission. `inside`: whether a thread is in it."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__(RECORDS, sizes)
        self.may = threading.Semaphore(0)
        self.inside = threading.Event()
        self.waited_ms: list[int] = []

    def ahead(self, start: int, topic_id: str, wait_ms: int = 0) -> Any:
        self.waited_ms.append(wait_ms)
        self.inside.set()
        self.may.acquire()
        try:
            return super().ahead(start, topic_id)
        finally:
            self.inside.clear()


def begun(monkeypatch: pytest.MonkeyPatch, partition: Partition) -> PortionReader:
    """A reader whose last range was from 0 to 5."""
    reader = reader_of(monkeypatch, INSIDE, partition)
    list(reader.read(0, 5))
    return reader


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 60), max_size=8), sizes=st.lists(st.integers(1, 9), max_size=9))
def test_batches_have_the_same_rows_however_far_the_thread_is(cuts: list[int], sizes: list[int]) -> None:
    ends, thread = [0, *sorted(cuts), 60], ReadingAhead()
    with pytest.MonkeyPatch.context() as monkeypatch:
        reader, found = reader_of(monkeypatch, INSIDE, Partition(RECORDS, sizes)), []
        for start, end in pairwise(ends):
            if reader.is_next(start, ""):
                thread.wait_for(reader, partial(reader.holds_all, end))
            held = reader.held(start, end)
            if held is None:
                thread.pause()
            found += what_is_in(iter(held) if held is not None else reader.read(start, end))[0]
            thread.go_on([reader], [reader])
    thread.stop()
    assert [number for _, _, number, _ in found] == list(range(1, 60))


def test_what_is_held_is_taken_while_the_thread_reads(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    partition = Gated([4, 4])
    reader = begun(monkeypatch, partition)
    thread.go_on([reader], [reader])
    assert partition.inside.wait(30)
    assert reader.held(5, 8) is None, "nothing is there yet"
    partition.may.release()
    wait_until(lambda: reader.ahead()[0] == 4 and partition.inside.is_set(), "the next one to be begun")
    assert reader.held(5, 10) is None, "not all of it is there"
    found = reader.held(5, 8)
    assert found is not None
    assert [number for _, _, number, _ in what_is_in(iter(found))[0]] == [5, 6, 7]
    assert reader.held(5, 8) is None, "it is the next one's turn"
    assert reader.ahead()[0] == 1
    partition.may.release(2)


def waits(thread: ReadingAhead, reader: PortionReader, end: int) -> threading.Thread:
    """A batch that ends before `end` waits for its rows."""
    there = partial(reader.holds_all, end)
    batch = threading.Thread(target=thread.wait_for, args=(reader, there), daemon=True)
    batch.start()
    wait_until(lambda: thread._waited is not None, "the batch to wait")
    return batch


def test_a_batch_waits_until_the_thread_has_read_all_its_rows_and_the_thread_reads_on(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    partition = Gated([3] * 5)
    reader = begun(monkeypatch, partition)
    thread.go_on([reader], [reader])
    assert partition.inside.wait(30)
    batch = waits(thread, reader, 10)
    partition.may.release()
    wait_until(lambda: reader.ahead()[0] == 3 and partition.inside.is_set(), "the second portion to be begun")
    assert batch.is_alive()
    partition.may.release()
    batch.join(30)
    assert not batch.is_alive()
    assert reader.held(5, 10) is not None
    assert partition.inside.wait(30), "it does not stand still for the batch"
    assert partition.waited_ms == [0, WAIT_MS, 0], "what nobody waits for must not hold up a stop"
    partition.may.release(4)


def test_a_batch_waits_for_rows_that_come_late_and_not_for_those_that_do_not_come(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    partition = Gated([3])
    reader = begun(monkeypatch, partition)
    thread.go_on([reader], [reader])
    assert partition.inside.wait(30)
    batch = waits(thread, reader, 10)
    partition.may.release(3)
    batch.join(30)
    assert not batch.is_alive()
    assert partition.waited_ms[-1] == WAIT_MS
    assert (reader.ahead()[0], reader.held(5, 10)) == (3, None)


def test_a_pause_waits_for_what_is_being_read_and_nothing_is_begun_before_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    partition = Gated([4, 4])
    reader = begun(monkeypatch, partition)
    thread.go_on([reader], [reader])
    assert partition.inside.wait(30)
    paused = threading.Event()
    other = threading.Thread(target=lambda: (thread.pause(), paused.set()))
    other.start()
    wait_until(lambda: thread._is_paused, "the pause to be asked for")
    assert not paused.is_set()
    partition.may.release(3)
    other.join(30)
    assert paused.is_set()
    assert not partition.inside.is_set()
    assert reader.ahead()[0] == 4, "the second one was not begun"
    thread.go_on([reader], [reader])
    wait_until(lambda: reader.ahead()[0] == 8, "it to go on")


def test_what_the_thread_raises_is_raised_by_the_batch(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    reader = begun(monkeypatch, Partition(RECORDS, [4]))

    def fails(_: int) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(reader, "read_one_ahead", fails)
    thread.go_on([reader], [reader])
    wait_until(lambda: thread._failure is not None, "it to fail")
    with pytest.raises(MemoryError):
        thread.pause()
    with pytest.raises(MemoryError):
        thread.go_on([], [reader])


def test_a_stop_waits_for_what_is_being_read_and_another_thread_may_begin(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    partition = Gated([4, 4, 4])
    reader = begun(monkeypatch, partition)
    thread.go_on([reader], [reader])
    assert partition.inside.wait(30)
    former = thread._thread
    was_inside: list[bool] = []

    def stops() -> None:
        thread.stop()
        was_inside.append(partition.inside.is_set())

    other = threading.Thread(target=stops)
    other.start()
    wait_until(lambda: bool(thread._changed._waiters or was_inside), "the stop to wait")
    assert not was_inside, "whoever stops would close a reader that is in use"
    partition.may.release()
    other.join(30)
    assert was_inside == [False]
    assert former is not None
    former.join(30)
    assert not former.is_alive()
    assert len(partition._sizes) == 2, "what was begun was read to its end"
    partition.may.release(3)
    thread.go_on([reader], [reader])
    wait_until(lambda: reader.ahead()[0] == 12, "another thread to read the rest")


def test_what_the_thread_raises_at_a_stop_is_nothing_to_the_next_batches(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    partition = Gated([4])
    reader = begun(monkeypatch, partition)
    read = reader.read_one_ahead

    def fails(_: int) -> None:
        read(0)
        raise MemoryError("no room")

    monkeypatch.setattr(reader, "read_one_ahead", fails)
    thread.go_on([reader], [reader])
    assert partition.inside.wait(30)
    former = thread._thread
    other = threading.Thread(target=thread.stop)
    other.start()
    wait_until(lambda: thread._is_paused, "the stop to be asked for")
    partition.may.release()
    other.join(30)
    assert former is not None
    former.join(30)
    assert thread._failure is None


def test_a_thread_that_is_full_goes_on_once_a_batch_has_taken_its_rows(
    monkeypatch: pytest.MonkeyPatch, thread: ReadingAhead
) -> None:
    monkeypatch.setattr(portions, "AHEAD_ROWS_MAX", 4)
    partition = Partition(RECORDS, [3] * 10)
    reader = begun(monkeypatch, partition)
    thread.go_on([reader], [reader])
    wait_until(lambda: reader.ahead()[0] == 6 and not thread._is_reading, "it to be full")
    assert reader.held(5, 11) is not None
    thread.go_on([reader], [reader])
    wait_until(lambda: reader.ahead()[0] == 6 and len(partition._sizes) == 6, "it to go on")
