"""Reading ahead, on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.journal.reader import JournalTail, JournalTrimmed
from pipeline_runtime.kafka import prefetcher as prefetcher_module
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.ahead import pack, unpack
from pipeline_runtime.kafka.arrow_batches import Rows
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings, open_admin, open_consumer
from pipeline_runtime.kafka.partition_reader import PartitionReader
from pipeline_runtime.kafka.prefetcher import AHEAD_ROWS_MAX, Prefetcher
from pipeline_runtime.kafka.reading import TopicEnd
from pipeline_runtime.kafka.topics import TopicLook
from pipeline_runtime.kafka.transactions import OutgoingRecord, OutgoingRows, Transactions
from pipeline_runtime.model.ids import OWN_TOPICS
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.replica.input_offsets import InputOffsets
from tests.open_transactions import leave_open
from tests.ports import free_ports
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration
KEY = "in-0"


class Setting:
    """A topic of one partition, who writes to it, and its prefetcher."""

    def __init__(self, kafka: str, topic: str = "") -> None:
        self.settings = KafkaSettings(kafka)
        self.topic = topic or f"tail-{uuid4().hex[:8]}"
        ensure_topics(self.settings, [Topic(self.topic)])
        self.writer = Transactions(self.settings, f"writer-{self.topic}")
        self.writer.initialise()
        self._changed = threading.Condition()
        self.ends = TopicEnd(self.settings, self.topic)
        self.prefetcher = Prefetcher(self.settings, {KEY: TopicPartition(self.topic, 0)}, self._arrived)

    def write(self, count: int) -> None:
        self.writer.commit([OutgoingRecord(self.topic, b"%d" % n) for n in range(count)])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S)

    def _arrived(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        self.prefetcher.close()
        self.ends.close()
        self.writer.close()


@pytest.fixture
def setting(kafka: str) -> Iterator[Setting]:
    made = Setting(kafka)
    yield made
    made.close()


def test_nothing_of_a_topic_that_was_created_again_while_nothing_was_read_ahead(setting: Setting) -> None:
    look = TopicLook(setting.settings)

    def id_now() -> str | None:
        seen = look.ask([setting.topic])[setting.topic]
        return None if seen is None else seen.id

    former = id_now()
    assert former is not None
    prefetcher = setting.prefetcher
    setting.write(3)
    prefetcher.follow({KEY: 0}, {setting.topic: former})
    setting.wait_until(lambda: prefetcher.ends() == {KEY: 3})
    prefetcher.hold(True)
    rests = prefetcher._parts[KEY]
    wait_until(lambda: not rests.watched, "it to read ahead no more")
    prefetcher.passed({KEY: 3}, {setting.topic: former})
    admin = open_admin(setting.settings)
    admin.delete_topics([setting.topic])
    wait_until(lambda: id_now() is None, "the topic to be deleted")
    ensure_topics(setting.settings, [Topic(setting.topic)])
    producer = KafkaProducer(bootstrap_servers=setting.settings.bootstrap)
    for number in range(9):
        producer.send(setting.topic, b"new %d" % number)
    producer.close()
    found: list[bool] = []
    asked = prefetcher._is_another
    prefetcher._is_another = lambda consumer: found.append(asked(consumer)) or found[-1]  # type: ignore[method-assign]
    prefetcher.hold(False)
    wait_until(lambda: found, "it to read ahead again")
    assert found[0]
    assert prefetcher.ends() == {KEY: 3}
    prefetcher.passed({KEY: 0}, {setting.topic: str(id_now())})
    setting.wait_until(lambda: prefetcher.ends() == {KEY: 9})
    admin.close()
    look.close()


def test_what_arrives_is_here_and_a_commits_own_marker_is_no_news(setting: Setting) -> None:
    setting.write(3)
    setting.prefetcher.follow({KEY: 0})
    setting.wait_until(lambda: setting.prefetcher.ends() == {KEY: 3})
    found = setting.prefetcher.records(KEY, 1, 3)
    assert found is not None
    assert [record.value for record in found] == [b"1", b"2"]
    setting.prefetcher.passed({KEY: 3})
    assert setting.prefetcher.oldest_at_s() is None
    setting.write(1)  # behind the marker of the first transaction
    setting.wait_until(lambda: setting.prefetcher.ends() == {KEY: 5})
    assert setting.prefetcher.ends() == {KEY: 5}
    again = setting.prefetcher.records(KEY, 3, 5)
    assert again is not None
    assert [record.offset for record in again] == [4]


def test_it_is_known_when_a_record_came_unless_it_lay_there_before(setting: Setting) -> None:
    setting.write(3)
    setting.prefetcher.follow({KEY: 0})
    setting.wait_until(lambda: setting.prefetcher.ends() == {KEY: 3})
    assert setting.prefetcher.oldest_at_s() is not None
    assert setting.prefetcher.arrived_at_s() is None, "they may have lain there for days"
    setting.prefetcher.passed({KEY: 3})
    before_s = monotonic()
    setting.write(1)
    setting.wait_until(lambda: setting.prefetcher.oldest_at_s() is not None)
    arrived_at_s = setting.prefetcher.arrived_at_s()
    assert arrived_at_s is not None
    assert before_s <= arrived_at_s <= monotonic()


def test_nothing_is_fetched_in_a_rest_and_what_came_in_it_is_taken_to_have_come_evenly(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetcher_module, "_ANSWER_S", PATIENCE_S)  # however slow this machine is
    prefetcher = setting.prefetcher
    setting.write(1)
    prefetcher.follow({KEY: 0})
    setting.wait_until(lambda: prefetcher.ends() == {KEY: 1})
    prefetcher.rest_until(monotonic() + 2 * PATIENCE_S)
    wait_until(lambda: prefetcher._is_resting, "its poll to be over")
    prefetcher.passed({KEY: 1})
    rests_from_s = prefetcher._polled_s
    setting.write(2)  # behind the marker of the first transaction
    assert prefetcher.ends() == {KEY: 1}
    prefetcher.rest_until(0.0)
    setting.wait_until(lambda: prefetcher.ends() == {KEY: 4})
    came_s = prefetcher.arrived_at_s()
    assert came_s is not None
    assert rests_from_s < came_s <= rests_from_s + (monotonic() - rests_from_s) / 3


def test_the_rows_that_wait_are_counted_without_the_markers(setting: Setting) -> None:
    only = GroupInput(index=0, source="a.out", schema=StreamSchema(fields=()), topic=setting.topic)
    offsets = InputOffsets(setting.settings, [only], {}, 100, setting._arrived)
    try:
        [key] = only.end_keys()
        offsets.passed({key: 0})
        for _ in range(3):
            setting.write(4)

        def waiting(start: int) -> int | None:
            offsets.look({key: start})
            return offsets.waiting_rows({key: start})

        setting.wait_until(lambda: waiting(0) == 12)
        assert waiting(5) == 8
        setting.write(AHEAD_ROWS_MAX)
        setting.write(500)
        setting.wait_until(lambda: waiting(0) == pytest.approx(AHEAD_ROWS_MAX + 512, abs=5))
        setting.write(200)  # batches are full without them, so the broker is asked a little later
        wait_until(
            lambda: waiting(0) == pytest.approx(AHEAD_ROWS_MAX + 712, abs=6), "the broker to be asked again"
        )
    finally:
        offsets.close()


def test_it_is_unknown_how_many_rows_wait_until_a_broker_has_said_it(setting: Setting) -> None:
    (nobody,) = free_ports(1)
    only = GroupInput(index=0, source="a.out", schema=StreamSchema(fields=()), topic=setting.topic)
    away = InputOffsets(KafkaSettings(f"127.0.0.1:{nobody}"), [only], {}, 100, setting._arrived)
    there = InputOffsets(setting.settings, [only], {}, 100, setting._arrived)
    begins = dict.fromkeys(only.end_keys(), 0)
    try:
        for offsets in (away, there):
            offsets.passed(begins)
            offsets.look(begins)
        wait_until(lambda: there.waiting_rows(begins) == 0, "the broker to be heard")
        assert away.waiting_rows(begins) is None
    finally:
        away.close()
        there.close()


def test_a_batch_ends_at_what_had_come_by_a_moment_or_at_the_oldest(setting: Setting) -> None:
    only = GroupInput(index=0, source="a.out", schema=StreamSchema(fields=()), topic=setting.topic)
    offsets = InputOffsets(setting.settings, [only], {}, 100, setting._arrived)
    try:
        [key] = only.end_keys()
        start = {key: 0}
        offsets.passed(start)
        before_s = monotonic()
        setting.write(3)
        setting.wait_until(lambda: offsets.advance(start, 0) == {key: 3})
        then_s = monotonic()
        setting.write(2)  # behind the marker of the first transaction
        setting.wait_until(lambda: offsets.advance(start, 0) == {key: 6})
        assert offsets.advance(start, 0, by_s=then_s) == {key: 3}
        assert offsets.advance(start, 0, by_s=before_s) == {key: 3}
        offsets.passed({key: 3})
        assert offsets.advance({key: 3}, 0, by_s=then_s) == {key: 6}
    finally:
        offsets.close()


def test_what_is_about_to_come_is_waited_for(setting: Setting) -> None:
    setting.prefetcher.follow({KEY: 0})
    writing = threading.Thread(target=setting.write, args=(3,))
    writing.start()
    found = setting.prefetcher.records(KEY, 0, 3, wait_s=PATIENCE_S)
    writing.join()
    assert found is not None
    assert [record.value for record in found] == [b"0", b"1", b"2"]


def test_records_that_unpack_to_very_much_are_left_out_here_and_in_tasks_and_few_are_read_at_once(
    setting: Setting,
) -> None:
    """Each of these batches takes a few KB in the topic: one of 40 MiB, and then 60 MiB in 20."""
    large = 40 * 1024 * 1024
    producer = KafkaProducer(
        bootstrap_servers=setting.settings.bootstrap,
        compression_type="zstd",
        linger_ms=0,
        max_request_size=2 * large,
    )
    for value in (b"before", bytes(large), b"behind", *[bytes(3 * 1024 * 1024)] * 20):
        producer.send(setting.topic, value=value).get(PATIENCE_S)
    producer.close()
    setting.prefetcher.follow({KEY: 0})
    setting.wait_until(lambda: setting.prefetcher.full)
    assert setting.prefetcher.ends() == {KEY: 4}, "the fourth has more bytes than are read ahead"
    ahead = setting.prefetcher.records(KEY, 0, 4)
    assert ahead is not None
    reader = PartitionReader(setting.settings, setting.topic, 0)
    [by_task] = reader.read(0, 3)
    reader.close()
    [found] = unpack([pack(record) for record in ahead[:3]], setting.topic)
    for records in (found, by_task):
        assert records.values.to_pylist() == [b"before", None, b"behind"]
        assert list(records.unread) == [1]
    setting.prefetcher.passed({KEY: 4})
    setting.wait_until(lambda: setting.prefetcher.ends() == {KEY: 5})


def test_what_was_not_read_ahead_is_said_not_to_be_here(setting: Setting) -> None:
    setting.write(AHEAD_ROWS_MAX + 500)
    setting.prefetcher.follow({KEY: 10})
    setting.wait_until(lambda: setting.prefetcher.full)
    assert setting.prefetcher.records(KEY, 0, 20) is None
    end = setting.prefetcher.ends()[KEY]
    assert setting.prefetcher.records(KEY, end - 1, end + 1) is None or end > AHEAD_ROWS_MAX
    # A batch that Spark's tasks have read themselves leads past all of it.
    setting.prefetcher.passed({KEY: AHEAD_ROWS_MAX + 400})
    assert not setting.prefetcher.full
    setting.wait_until(lambda: setting.prefetcher.ends() == {KEY: AHEAD_ROWS_MAX + 500})
    found = setting.prefetcher.records(KEY, AHEAD_ROWS_MAX + 400, AHEAD_ROWS_MAX + 500)
    assert found is not None
    assert len(found) == 100


def test_an_open_transaction_hides_what_was_committed_behind_it(setting: Setting) -> None:
    """Why a claim's second read goes by another end than its first."""
    setting.write(1)
    abandoned = Transactions(setting.settings, f"abandoned-{setting.topic}")
    abandoned.initialise()
    leave_open(abandoned, OutgoingRecord(setting.topic, b"open"))
    setting.write(2)
    seen = setting.ends.ask()
    whole = setting.ends.ask(hidden=True)
    abandoned.close()
    assert (seen, whole) == (2, 6)


@pytest.mark.parametrize("opened", [open_admin, open_consumer])
def test_who_finds_no_broker_leaves_no_thread_behind(opened: Callable[..., Any]) -> None:
    (nobody,) = free_ports(1)
    before = set(threading.enumerate())
    with pytest.raises(KafkaError):
        opened(KafkaSettings(f"127.0.0.1:{nobody}"), bootstrap_timeout_ms=300)
    wait_until(lambda: not set(threading.enumerate()) - before, "the end of its threads")


@pytest.fixture
def failing_ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Clients that end, and then say that something is not as they expect it; which ones have."""
    ended: list[str] = []

    def failing(kind: type) -> None:
        close = kind.close

        def close_and_fail(client: Any, **options: Any) -> None:
            close(client, **options)
            ended.append(kind.__name__)
            raise AssertionError("not as expected")

        monkeypatch.setattr(kind, "close", close_and_fail)

    failing(KafkaConsumer)
    failing(KafkaAdminClient)
    return ended


def test_a_client_that_fails_at_its_end_ends_no_thread_and_hides_nothing(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, failing_ends: list[str]
) -> None:
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    journal = JournalTail(setting.settings, setting.topic, 99, lambda _: None)
    journal.start()
    with pytest.raises(JournalTrimmed):
        journal.wait_until(1, PATIENCE_S)
    setting.prefetcher.follow({KEY: 0})
    setting.prefetcher.close()
    setting.prefetcher._thread.join(PATIENCE_S)
    assert not setting.prefetcher._thread.is_alive()
    assert setting.ends.ask() == 0
    setting.ends.close()
    assert failing_ends == ["KafkaConsumer", "KafkaConsumer", "KafkaAdminClient"]
    assert failed == []
    assert setting.ends.ask() == 0, "it is opened again"


def test_a_transaction_that_is_kept_open_hides_nothing(setting: Setting) -> None:
    armed = Transactions(setting.settings, f"armed-{setting.topic}")
    armed.initialise()
    armed.keep_open([setting.topic])
    setting.write(2)
    assert setting.ends.ask() == 3
    # Its partition was known: written and ended, nothing else.
    assert armed.commit([OutgoingRecord(setting.topic, b"first")]) == 2
    armed.close()


def test_many_rows_of_an_own_topic_are_kept_whole_and_counted_row_by_row(kafka: str) -> None:
    setting = Setting(kafka, f"{OWN_TOPICS}d.{uuid4().hex[:8]}.out")
    try:
        rows = Rows(
            pa.nulls(300, pa.binary()), np.arange(300, dtype=np.int64), pa.table({"n": list(range(300))})
        )
        setting.writer.commit([OutgoingRows(setting.topic, rows)])
        setting.write(2)
        prefetcher = setting.prefetcher
        prefetcher.follow({KEY: 10})
        setting.wait_until(lambda: prefetcher.ends() == {KEY: 303})
        assert prefetcher.held({KEY: 10})[KEY][:2] == (292, 10)
        found = prefetcher.records(KEY, 20, 302)
        assert found is not None
        [whole, one] = unpack([pack(record) for record in found], setting.topic)
        assert whole.between(20, 302).rows.equals(rows.fields.slice(20))
        assert one.values.to_pylist() == [b"0"]
        prefetcher.passed({KEY: 200})
        assert prefetcher.held({KEY: 200})[KEY][:2] == (102, 200)
        assert prefetcher.row_bytes() > 0
        prefetcher.passed({KEY: 304})
        assert (prefetcher._rows, prefetcher._bytes) == (0, 0)
    finally:
        setting.close()


def test_two_topics_that_have_more_rows_than_one_poll_takes_are_both_read_to_their_ends(kafka: str) -> None:
    setting = Setting(kafka, f"{OWN_TOPICS}d.{uuid4().hex[:8]}.out")
    other = f"{OWN_TOPICS}d.{uuid4().hex[:8]}.out"
    ensure_topics(setting.settings, [Topic(other)])
    prefetcher = Prefetcher(
        setting.settings,
        {KEY: TopicPartition(setting.topic, 0), "other": TopicPartition(other, 0)},
        setting._arrived,
    )
    count, batches = AHEAD_ROWS_MAX * 3 // 4, 5
    numbers = np.arange(count, dtype=np.int64)
    many = Rows(pa.nulls(count, pa.binary()), numbers, pa.table({"n": numbers}))
    for _ in range(batches):
        setting.writer.commit([OutgoingRows(setting.topic, many), OutgoingRows(other, many)])

    def read_to_their_ends() -> bool:
        found = prefetcher.ends()
        prefetcher.passed(found)
        return set(found.values()) == {batches * (count + 1) - 1}

    try:
        prefetcher.follow({KEY: 0, "other": 0})
        wait_until(read_to_their_ends, lambda: f"the ends of both, and not {prefetcher.ends()}")
    finally:
        prefetcher.close()
        setting.close()
