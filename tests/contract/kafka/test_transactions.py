"""What a transaction writes is what a read_committed consumer reads, of whatever size and shape."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from kafka import TopicPartition
from kafka.partitioner import murmur2

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.transactions import END_HEADER, Fenced, OutgoingRecord, Transactions

pytestmark = pytest.mark.integration


def opened(kafka: str, transactional_id: str) -> Transactions:
    transactions = Transactions(KafkaSettings(kafka), transactional_id)
    transactions.initialise()
    return transactions


def new_topic(kafka: str, partitions: int) -> str:
    name = f"tx-{uuid4().hex[:8]}"
    ensure_topics(KafkaSettings(kafka), [Topic(name, partitions=partitions)])
    return name


def read(kafka: str, topic: str, partitions: int) -> dict[int, list[Any]]:
    consumer = open_consumer(KafkaSettings(kafka), max_partition_fetch_bytes=8 << 20)
    parts = [TopicPartition(topic, number) for number in range(partitions)]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    ends = consumer.end_offsets(parts)
    found: dict[int, list[Any]] = {number: [] for number in range(partitions)}
    while any(consumer.position(part) < ends[part] for part in parts):
        for part, records in consumer.poll(200).items():
            found[part.partition] += records
    consumer.close()
    return found


def test_many_records_small_and_large_keep_their_order(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    sizes = [30] * 9_000 + [500_000, 10, 80_000, 10, 10] + [200] * 3_000
    sent = [
        OutgoingRecord(
            topic, str(n).encode() + b"." * size, None if n % 7 == 0 else b"k%d" % (n % 50), 1_000 + n
        )
        for n, size in enumerate(sizes)
    ]
    sent.append(OutgoingRecord(topic, b"", partition=0, headers=(END_HEADER,)))
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit(sent)
    transactions.commit(sent[:2])
    transactions.close()

    got = read(kafka, topic, 1)[0]

    assert [(r.key, r.value) for r in got] == [(r.key, r.value) for r in [*sent, *sent[:2]]]
    assert [r.timestamp for r in got[: len(sizes)]] == [r.timestamp_ms for r in sent[: len(sizes)]]
    assert [list(r.headers) for r in got if r.headers] == [[END_HEADER]]


def test_keys_choose_the_partitions_that_other_producers_choose(kafka: str) -> None:
    topic = new_topic(kafka, 3)
    sent = [OutgoingRecord(topic, b"%d" % n, b"key-%d" % (n % 40)) for n in range(2_000)]
    sent += [OutgoingRecord(topic, b"", partition=number, headers=(END_HEADER,)) for number in range(3)]
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit(sent)
    transactions.close()

    found = read(kafka, topic, 3)

    for number, records in found.items():
        assert records[-1].headers
        assert {(murmur2(record.key) & 0x7FFFFFFF) % 3 for record in records[:-1]} == {number}
        values = [int(record.value) for record in records[:-1]]
        assert values == sorted(values)
    assert sum(len(records) for records in found.values()) == len(sent)


def test_the_last_record_of_a_stream_comes_behind_those_without_a_key(kafka: str) -> None:
    topic = new_topic(kafka, 2)
    sent = [OutgoingRecord(topic, b"keyed", b"a"), *(OutgoingRecord(topic, b"%d" % n) for n in range(100))]
    sent += [OutgoingRecord(topic, b"", partition=number, headers=(END_HEADER,)) for number in range(2)]
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit(sent)
    transactions.close()

    found = read(kafka, topic, 2)

    assert sum(len(records) for records in found.values()) == len(sent)
    assert all(records[-1].headers for records in found.values())


def test_of_a_fenced_owners_batch_nothing_is_readable(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    first = opened(kafka, f"{topic}-id")
    second = opened(kafka, f"{topic}-id")
    with pytest.raises(Fenced):
        first.commit([OutgoingRecord(topic, b"old", b"k", 1)] * 10_000)
    second.commit([OutgoingRecord(topic, b"new", b"k", 1)] * 3)
    first.close()
    second.close()

    assert [record.value for record in read(kafka, topic, 1)[0]] == [b"new"] * 3
