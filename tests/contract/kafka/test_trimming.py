"""Trimming on a real broker: what goes, what stays, and who still can read."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from pipeline_runtime.journal.grants import grants_from
from pipeline_runtime.journal.reader import JournalTail, JournalTrimmed
from pipeline_runtime.journal.records import Arm, Boundary, Claim, Commit, Record, encode
from pipeline_runtime.kafka.admin import Topic, ensure_topics, trim_topics
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_admin, open_consumer
from pipeline_runtime.kafka.reach import Gone, gone
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration


def new_topic(kafka: str, partitions: int = 1) -> str:
    name = f"trim-{uuid4().hex[:8]}"
    ensure_topics(KafkaSettings(kafka), [Topic(name, "journal", partitions)])
    return name


def write(kafka: str, topic: str, values: list[bytes]) -> None:
    transactions = Transactions(KafkaSettings(kafka), f"{topic}-id")
    transactions.initialise()
    for value in values:
        transactions.commit([OutgoingRecord(topic, value, partition=0)])
    transactions.close()


def offsets(kafka: str, topic: str) -> list[int]:
    consumer = open_consumer(KafkaSettings(kafka))
    tp = TopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek_to_beginning(tp)
    end = consumer.end_offsets([tp])[tp]
    found: list[int] = []
    while consumer.position(tp) < end:
        found += [record.offset for record in consumer.poll(200).get(tp, [])]
    consumer.close()
    return found


def test_records_before_the_point_go_and_no_other(kafka: str) -> None:
    settings = KafkaSettings(kafka)
    one, other = new_topic(kafka), new_topic(kafka)
    for topic in (one, other):
        write(kafka, topic, [b"%d" % number for number in range(10)])
    whole = offsets(kafka, one)
    points = {(one, 0): whole[4], (other, 0): 0, (f"{one}-that-is-gone", 0): 5}
    assert trim_topics(settings, points) == {(one, 0): whole[4]}
    assert offsets(kafka, one) == whole[4:]
    assert offsets(kafka, other) == whole
    wanted = {(one, 0): whole[1], (other, 0): whole[1]}
    assert gone(settings, wanted) == [Gone(one, 0, needed=whole[1], first=whole[4])]
    assert trim_topics(settings, points) == {}, "the same again changes nothing"
    write(kafka, one, [b"later"])
    assert len(offsets(kafka, one)) == 7, "it goes on"


def test_a_point_behind_the_end_takes_what_is_there_and_fails_nothing(kafka: str) -> None:
    topic = new_topic(kafka)
    write(kafka, topic, [b"a", b"b"])
    assert list(trim_topics(KafkaSettings(kafka), {(topic, 0): 10_000})) == [(topic, 0)]
    assert offsets(kafka, topic) == []


def test_a_journal_says_from_where_on_it_names_its_owner(kafka: str) -> None:
    topic, settings = new_topic(kafka), KafkaSettings(kafka)
    commit = Commit(Epoch(1), Boundary(Seq(1), {}, 0))
    records: list[Record] = [Claim(Epoch(1), "o", "a"), commit, Arm(Epoch(2), "t", "h")]
    write(kafka, topic, [encode(record) for record in records])
    claim, committed, armed = offsets(kafka, topic)
    assert grants_from(settings, topic, 0)
    assert grants_from(settings, topic, claim + 1)
    assert grants_from(settings, topic, committed)
    assert not grants_from(settings, topic, armed)
    assert not grants_from(settings, topic, armed + 100)


def test_a_journal_that_begins_too_late_is_not_read_as_if_nothing_were_missing(kafka: str) -> None:
    topic = new_topic(kafka)
    commits = [Commit(Epoch(1), Boundary(Seq(seq), {}, 0)) for seq in range(1, 6)]
    write(kafka, topic, [encode(commit) for commit in commits])
    whole = offsets(kafka, topic)
    trim_topics(KafkaSettings(kafka), {(topic, 0): whole[2]})
    tail = JournalTail(KafkaSettings(kafka), topic, whole[1], lambda records: None)
    tail.start()
    with pytest.raises(JournalTrimmed, match="has the offsets from"):
        tail.wait_until(whole[-1], PATIENCE_S)


def test_a_reader_that_was_away_for_too_long_does_not_go_on_behind_what_it_has_missed(kafka: str) -> None:
    """As of a machine that was suspended, while its journal was trimmed."""
    topic, settings = new_topic(kafka), KafkaSettings(kafka)
    commits = [encode(Commit(Epoch(1), Boundary(Seq(seq), {}, 0))) for seq in range(1, 41)]
    write(kafka, topic, commits[:1])
    reading, resumed = threading.Event(), threading.Event()

    def apply(records: object) -> None:
        reading.set()
        resumed.wait()

    tail = JournalTail(settings, topic, 0, apply)
    tail.start()
    assert reading.wait(PATIENCE_S)
    write(kafka, topic, commits[1:])
    trim_topics(settings, {(topic, 0): offsets(kafka, topic)[-1]})
    resumed.set()
    wait_until(lambda: tail.failure is not None, "the reader to notice")
    tail.close()
    assert isinstance(tail.failure, JournalTrimmed)


def test_no_journal_ends_by_its_age_or_size_whatever_the_brokers_defaults_are(kafka: str) -> None:
    topic = new_topic(kafka)
    admin = open_admin(KafkaSettings(kafka))
    try:
        answer = admin.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all"
        )
    finally:
        admin.close()
    [[found]] = [of_type.values() for of_type in answer.values()]
    assert {name: found[name]["value"] for name in ("retention.ms", "retention.bytes")} == {
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }
