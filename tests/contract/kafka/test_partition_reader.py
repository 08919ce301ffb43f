"""Ranges of a real topic are what a consumer reads, however they are cut and wherever a reader has been."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from time import time
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.portions import PortionReader, read_ahead
from pipeline_runtime.kafka import incoming
from pipeline_runtime.kafka.admin import Topic, ensure_topics, trim_topics
from pipeline_runtime.kafka.arrow_batches import BODY_BYTES_MAX, Rows, compressed, encoded
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.incoming import Records
from pipeline_runtime.kafka.partition_reader import PartitionReader, RangeGone
from pipeline_runtime.kafka.peek import peek, read_span
from pipeline_runtime.kafka.reach import gone
from pipeline_runtime.kafka.topics import TopicLook
from pipeline_runtime.kafka.transactions import (
    END_HEADER,
    OutgoingBodies,
    OutgoingRecord,
    OutgoingRows,
    Transactions,
)
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration
COMPRESSIONS = (None, "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    """A topic of one partition: small and large transactions, committed or aborted, and records that were
    sent without a transaction, some of them compressed."""
    name, now_ms = f"ranges-{uuid4().hex[:8]}", int(time() * 1000)
    ensure_topics(KafkaSettings(kafka), [Topic(name)])
    owner = Transactions(KafkaSettings(kafka), f"{name}-id")
    owner.initialise()
    aborting = KafkaProducer(bootstrap_servers=kafka, transactional_id=f"{name}-aborting")
    aborting.init_transactions()
    for size, count in ((10, 3_000), (3_000, 40), (300_000, 3), (100, 4_000)):
        owner.commit(
            OutgoingRecord(name, b"%d " % n + bytes(size), b"k%d" % (n % 7), now_ms + n) for n in range(count)
        )
        aborting.begin_transaction()
        for number in range(5):
            aborting.send(name, value=b"of no use %d" % number)
        aborting.flush()
        aborting.abort_transaction()
        for compression in COMPRESSIONS:
            plain = KafkaProducer(bootstrap_servers=kafka, compression_type=compression)
            for number in range(30):
                plain.send(
                    name,
                    key=b"k",
                    value=None if number % 9 == 0 else b"plain",
                    headers=[("h", b"x")] * (number % 3),
                )
            plain.flush()
            plain.close()
    owner.commit([OutgoingRecord(name, b"", partition=0, headers=(END_HEADER,))])
    owner.close()
    aborting.close()
    return name


def by_consumer(kafka: str, topic: str) -> list[Any]:
    consumer, partition = open_consumer(KafkaSettings(kafka)), TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = end_of(kafka, topic)
    found: list[Any] = []
    while consumer.position(partition) < end:
        found += consumer.poll(200).get(partition, [])
    consumer.close()
    return [(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in found]


def end_of(kafka: str, topic: str) -> int:
    """Also of what a consumer of committed records alone is not told of yet."""
    consumer, partition = (
        open_consumer(KafkaSettings(kafka), isolation_level="read_uncommitted"),
        TopicPartition(topic, 0),
    )
    end = int(consumer.end_offsets([partition])[partition])
    consumer.close()
    return end


def by_reader(reader: PartitionReader, start: int, end: int) -> Iterator[tuple[Any, ...]]:
    for records in reader.read(start, end):
        yield from rows_of(records)


def rows_of(records: Records) -> Iterator[tuple[Any, ...]]:
    for place in range(len(records)):
        yield (
            int(records.offsets[place]),
            int(records.timestamps_ms[place]),
            records.keys[place].as_py(),
            records.values[place].as_py(),
            records.headers.get(place, ()),
        )


@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize("at_once", [50, incoming.ROWS_AT_ONCE])
def test_ranges_one_behind_the_other_and_anywhere(
    kafka: str, topic: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "ROWS_AT_ONCE", at_once)
    expected, end, random = by_consumer(kafka, topic), end_of(kafka, topic), Random(26)
    assert len(expected) == 3_000 + 40 + 3 + 4_000 + 4 * 30 * len(COMPRESSIONS) + 1
    reader = PartitionReader(KafkaSettings(kafka), topic, 0)
    start = 0
    for _ in range(40):
        if random.random() < 0.3:
            start = random.randrange(end)
        stop = min(end, start + random.choice([1, 7, 200, 3_000]))
        assert list(by_reader(reader, start, stop)) == [row for row in expected if start <= row[0] < stop]
        while random.random() < 0.5 and (more := reader.ahead(stop)) is not None:
            records, reached = more
            assert list(rows_of(records)) == [row for row in expected if stop <= row[0] < reached]
            stop = reached
        start = stop if stop < end else 0
    assert list(by_reader(reader, 0, end)) == expected
    assert reader.ahead(end) is None
    assert reader.ahead(1) is None
    reader.close()


def test_a_range_that_was_left_in_its_middle_is_read_anew(kafka: str, topic: str) -> None:
    expected = [row for row in by_consumer(kafka, topic) if row[0] < 4_000]
    reader = PartitionReader(KafkaSettings(kafka), topic, 0)
    assert next(by_reader(reader, 0, 4_000)) == expected[0]
    assert list(by_reader(reader, 0, 4_000)) == expected
    assert next(by_reader(reader, 100, 4_000))[0] == 100
    assert list(by_reader(reader, 2_000, 4_000)) == [row for row in expected if row[0] >= 2_000]
    reader.close()


def test_what_its_topic_has_deleted_is_not_passed_over(kafka: str) -> None:
    name = f"ranges-{uuid4().hex[:8]}"
    ensure_topics(KafkaSettings(kafka), [Topic(name, "journal")])
    owner = Transactions(KafkaSettings(kafka), f"{name}-id")
    owner.initialise()
    owner.commit([OutgoingRecord(name, b"%d" % number, partition=0) for number in range(10)])
    owner.close()
    trim_topics(KafkaSettings(kafka), {(name, 0): 5})
    reader = PartitionReader(KafkaSettings(kafka), name, 0)
    with pytest.raises(RangeGone):
        list(reader.read(4, 8))
    assert [row[3] for row in by_reader(reader, 5, 8)] == [b"5", b"6", b"7"]
    reader.close()


def test_nothing_is_read_of_another_topic_that_has_the_name_by_now(kafka: str) -> None:
    name, settings = f"ranges-{uuid4().hex[:8]}", KafkaSettings(kafka)
    admin = KafkaAdminClient(bootstrap_servers=kafka)

    def made(*values: bytes) -> str:
        admin.create_topics([NewTopic(name, 1, 1)])
        admin.wait_for_topics([name])
        with_records = KafkaProducer(bootstrap_servers=kafka)
        for value in values:
            with_records.send(name, value).get(30)
        with_records.close()
        seen = TopicLook(settings).ask([name])[name]
        assert seen is not None
        return seen.id

    former = made(b"a", b"b", b"c")
    item = GroupInput(0, "a.out", StreamSchema(fields=()), name, 1, "a", external=True)
    reader = PortionReader(settings, item, 0)

    def read(start: int, end: int, topic_id: str) -> list[bytes]:
        found = reader.read(start, end, topic_id)
        return [value for portion in found for value in portion.records.values.to_pylist()]

    assert read(0, 2, former) == [b"a", b"b"]
    read_ahead([reader], [reader], lambda: False)
    admin.delete_topics([name])
    wait_until(lambda: TopicLook(settings).ask([name])[name] is None, "the topic to be deleted")
    present = made(b"x", b"y", b"z")
    assert read(2, 3, former) == [b"c"], "it was read, and the id asked for, before the topic was deleted"
    for range_ in ((3, 4), (0, 3), (1, 9)):
        with pytest.raises(RangeGone, match="created again"):
            read(*range_, former)
    assert read(0, 3, present) == [b"x", b"y", b"z"]
    reader.close()
    admin.close()


def test_rows_that_lie_in_columns_are_read_from_anywhere_by_all_readers(kafka: str) -> None:
    name, settings, random = f"fl.{uuid4().hex[:8]}.a.out", KafkaSettings(kafka), Random(43)
    ensure_topics(settings, [Topic(name)])
    owner = Transactions(settings, f"{name}-id")
    owner.initialise()
    count, now_ms = 0, int(time() * 1000)
    for size in (3_000, 10, 250, 12_000, 1, 400):  # few rows go as JSON
        numbers = range(count, count + size)
        fields = pa.table({"n": pa.array(numbers), "text": pa.array([f"t{n % 9}" for n in numbers])})
        keys = pa.array([None if n % 4 else b"k%d" % (n % 7) for n in numbers], pa.binary())
        times_ms = np.array([now_ms + n for n in numbers], np.int64)
        rows = Rows(keys, times_ms, fields)
        if size in (3_000, 400):
            bodies = [compressed(body) for body in encoded(rows, BODY_BYTES_MAX)]
            owner.commit([OutgoingBodies(name, bodies)])
        else:
            owner.commit([OutgoingRows(name, rows)])
        count += size
    owner.close()

    records = by_consumer(kafka, name)  # of open_consumer
    assert [json.loads(row[3]) for row in records] == [{"n": n, "text": f"t{n % 9}"} for n in range(count)]
    assert [row[1] for row in records] == [now_ms + n for n in range(count)]
    assert [row[2] for row in records] == [None if n % 4 else b"k%d" % (n % 7) for n in range(count)]

    types = (("n", FieldType.INTEGER), ("text", FieldType.STRING))
    schema = StreamSchema(fields=tuple(Field(name=name, type=type_) for name, type_ in types))
    reader = PortionReader(settings, GroupInput(0, "a.out", schema, name, 1, "a"), 0)
    end, start = end_of(kafka, name), 0
    for _ in range(40):
        if random.random() < 0.3:
            start = random.randrange(end)
        stop = min(end, start + random.choice([1, 100, 4_000]))
        expected = [row for row in records if start <= row[0] < stop]
        found = list(reader.read(start, stop))
        rows = [row for portion in found for row in portion.read.columns.to_pylist()]
        assert rows == [json.loads(row[3]) for row in expected]
        offsets = [offset for portion in found for offset in portion.records.offsets.tolist()]
        assert offsets == [row[0] for row in expected]
        read_ahead([reader], [reader], lambda: random.random() < 0.5)
        start = stop if stop < end else 0
    reader.close()

    assert [json.loads(each.value)["n"] for each in peek(settings, name, 20)] == [*range(count - 20, count)]
    span = read_span(settings, name, now_ms + 2_900, now_ms + 3_100, 1_000)
    assert [json.loads(each.value)["n"] for each in span.records] == [*range(2_900, 3_101)]


def test_rows_in_columns_are_trimmed_row_by_row(kafka: str) -> None:
    """The broker keeps a batch whole until its last row may go. No reader gets the trimmed rows of it."""
    name, settings = f"fl.{uuid4().hex[:8]}.a.out", KafkaSettings(kafka)
    ensure_topics(settings, [Topic(name)])
    owner = Transactions(settings, f"{name}-id")
    owner.initialise()
    now_ms = int(time() * 1000)
    for first in (0, 400):
        numbers = np.arange(first, first + 400)
        rows = Rows(pa.nulls(400, pa.binary()), now_ms + numbers, pa.table({"n": numbers}))
        owner.commit([OutgoingRows(name, rows)])
    owner.close()
    whole = by_consumer(kafka, name)
    assert len(whole) == 800

    trimmed_to = 0
    for kept_from in (150, 399, 401):
        point = whole[kept_from][0]
        assert trim_topics(settings, {(name, 0): point}) == {(name, 0): point - trimmed_to}
        trimmed_to = point
        assert by_consumer(kafka, name) == whole[kept_from:]
        reader, end = PartitionReader(settings, name, 0), end_of(kafka, name)
        found = list(reader.read(point, end))
        assert [offset for each in found for offset in each.offsets.tolist()] == [
            row[0] for row in whole[kept_from:]
        ]
        with pytest.raises(RangeGone):
            list(reader.read(point - 1, end))
        reader.close()
        [missed] = gone(settings, {(name, 0): point - 1})
        assert (missed.needed, missed.first) == (point - 1, point)
        shown = [json.loads(each.value)["n"] for each in peek(settings, name, 1_000)]
        assert shown == [*range(kept_from, 800)]
        span = read_span(settings, name, now_ms, now_ms + 800, 1_000)
        assert [json.loads(each.value)["n"] for each in span.records] == shown


@pytest.mark.timeout(4 * PATIENCE_S)
def test_the_gaps_that_compaction_leaves_are_no_lost_rows(kafka: str) -> None:
    name, settings = f"compacted-{uuid4().hex[:8]}", KafkaSettings(kafka)
    at_once = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "100"}
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    admin.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact", **at_once})])
    admin.wait_for_topics([name])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka)
    for number in range(300):
        producer.send(name, b"%d" % number, key=b"k%d" % (number % 5))

    def is_compacted() -> bool:
        producer.send(name, b"last", key=b"last").get(30)  # what a segment ends for
        return len(by_consumer(kafka, name)) < 200

    wait_until(is_compacted, "the broker has compacted the topic")
    producer.close()
    reader, end = PartitionReader(settings, name, 0), end_of(kafka, name)
    wait_until(lambda: [*by_reader(reader, 0, end)] == by_consumer(kafka, name), "all that is left is read")
    assert {key for _, _, key, _, _ in by_reader(reader, 0, end)} == {
        b"last",
        *(b"k%d" % n for n in range(5)),
    }
    assert [*by_reader(reader, 1, 250)] == []  # a position may lie within a gap
    assert gone(settings, {(name, 0): 0}) == []
    reader.close()
