"""The message of a replica that makes no progress."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from pipeline_runtime.journal.records import LEFT_OUT, Boundary
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.replica import broker_watch
from pipeline_runtime.replica.broker_watch import SILENT_MS, BrokerWatch
from pipeline_runtime.replica.errors import explain
from pipeline_runtime.replica.stalls import (
    STALLED_S,
    BatchTooLong,
    read_between,
    skipped,
    stalled,
    way_behind,
)
from pipeline_runtime.replica.state import ReplicaState
from tests.waiting import wait_until

NOW_MS = 10_000_000


def test_a_broker_that_is_silent_is_said_before_all_else() -> None:
    found = stalled(NOW_MS - 20_000, NOW_MS - 90_000, "t", NOW_MS)
    assert found is not None
    assert (found.since_ms, "Kafka" in found.why) == (NOW_MS - 20_000, True)


def test_a_batch_is_said_that_runs_for_long_and_what_it_reads() -> None:
    since_ms = NOW_MS - int(STALLED_S * 1000)
    assert stalled(None, since_ms + 1, "orders, partition 0, offset 3", NOW_MS) is None
    found = stalled(None, since_ms, "orders, partition 0, offset 3", NOW_MS)
    assert found is not None
    assert "orders, partition 0, offset 3" in found.why
    assert stalled(None, None, "", NOW_MS) is None


def test_what_a_batch_reads_is_said_by_topic_partition_and_offsets() -> None:
    start = {"my-topic-0": 12, "my-topic-1": 5, "my-topic-2": 7, "replay": 3, "replay-2": {"row": 1}}
    end = {"my-topic-0": 16, "my-topic-1": 6, "my-topic-2": 7, "replay": 9, "replay-2": {"row": 4}}
    assert (
        read_between(start, end) == "my-topic, partition 0, offsets 12 to 15; my-topic, partition 1, offset 5"
    )
    many = {f"t-{number}": 1 for number in range(9)}
    assert read_between(dict.fromkeys(many, 0), many).endswith(
        "t, partition 2, offset 0; and 6 more partitions"
    )
    assert read_between({}, {"t-0": 4}) == ""


def test_a_batch_that_only_waits_for_its_owner_is_not_slow() -> None:
    state = ReplicaState()
    state.grant(Boundary(Seq(0), {"t-0": 0}, 0), Boundary(Seq(1), {"t-0": 2}, 5))
    assert state.ahead, "nobody has committed it"
    assert state.batch_since_ms is None
    permit: Any = object()
    state.permit = permit
    assert state.batch_since_ms is not None
    assert state.reads_now == "t, partition 0, offsets 0 to 1"
    state.no_batch_runs()
    assert (state.batch_since_ms, state.reads_now) == (None, "")


def test_a_batch_that_took_too_long_has_a_page_of_its_own() -> None:
    error = explain(BatchTooLong(600, "t, partition 0, offset 3"), "", NOW_MS)
    assert error.code == "batch-too-long"
    assert "t, partition 0, offset 3, has not ended within 600 s" in error.message


def test_a_broker_is_silent_some_time_after_its_last_answer_and_until_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, told, now_ms = threading.Event(), threading.Event(), [NOW_MS]

    def ask(*_: Any) -> float:
        if not answers.is_set():
            raise KafkaTimeoutError("no answer")
        return 1.0

    monkeypatch.setattr(broker_watch, "round_trip_ms", ask)
    monkeypatch.setattr(broker_watch, "EVERY_S", 0.01)
    monkeypatch.setattr(broker_watch, "_now_ms", lambda: now_ms[0])
    watch = BrokerWatch(KafkaSettings("none:1"), told.set)
    assert watch.silent_since_ms is None, "it has not begun"
    watch.start()
    now_ms[0] += SILENT_MS - 1
    assert watch.silent_since_ms is None
    now_ms[0] += 1
    assert watch.silent_since_ms == NOW_MS
    answers.set()
    wait_until(lambda: watch.silent_since_ms is None, lambda: "the answer to count")
    assert told.wait(5)
    watch.close()


def test_what_a_person_skips_is_left_out_once_and_only_where_the_group_stands() -> None:
    start, end = {"t-0": 12, "t-1": 5, "u-0": 3}, {"t-0": 16, "t-1": 6, "u-0": 3}
    way = way_behind(start, end)
    assert way is not None
    assert "5 records (t, partition 0, offsets 12 to 15; t, partition 1, offset 5) are left out" in way.cost
    found, count = skipped({**start, "replay": {"row": 1}}, ["u is 7", way.id])
    assert found == {**end, "replay": {"row": 1}, LEFT_OUT: {"t-0": 4, "t-1": 1}}
    assert count == 5
    assert skipped(found, [way.id]) == (found, 0)
    in_the_middle = {"t-0": 14, "t-1": 6}
    assert skipped(in_the_middle, [way.id]) == (in_the_middle, 0), "its first records could be read after all"
    assert skipped({"t-0": 11, "t-1": 9}, [way.id]) == ({"t-0": 11, "t-1": 9}, 0)


def test_there_is_no_way_behind_what_no_topic_holds() -> None:
    assert way_behind({"replay": 1}, {"replay": 5}) is None
