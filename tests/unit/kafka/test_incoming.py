"""Reading batch by batch gives the same records as a consumer of kafka-python, which reads record by
record."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from pipeline_runtime.kafka import incoming, partition_reader
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.incoming import ROWS_AT_ONCE, Polled, Records, decoded
from pipeline_runtime.kafka.partition_reader import PartitionReader, RangeUnreadable
from pipeline_runtime.kafka.whole_batches import WholeBatches
from tests.chosen import examples

NOW_MS = 1_700_000_000_000
GZIP = 1


class Sent(NamedTuple):
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


texts = st.none() | st.binary(max_size=20) | st.integers(50, 9_000).map(bytes)
sent = st.builds(
    Sent,
    st.integers(0, 2**43) | st.integers(NOW_MS, NOW_MS + 200_000),
    texts,
    texts,
    st.just([]) | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
)
batches = st.lists(
    st.tuples(st.lists(sent, min_size=1, max_size=12), st.integers(0, 300), st.sampled_from([0, GZIP])),
    max_size=6,
)


def bytes_of(records: list[Sent], base_offset: int, compression: int = 0, **producer: Any) -> bytes:
    given = {"is_transactional": False, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=compression, batch_size=1 << 30, **{**given, **producer}
    )
    for place, record in enumerate(records):
        assert builder.append(place, *record) is not None
    made = bytearray(builder.build())
    made[:8] = base_offset.to_bytes(8, "big")  # which the checksum leaves out, since the broker sets it
    return bytes(made)


def log_of(made: list[tuple[list[Sent], int, int]]) -> bytes:
    """The batches, so many offsets apart, as a broker has them."""
    log, offset = b"", 0
    for records, gap, compression in made:
        log += bytes_of(records, offset + gap, compression)
        offset += gap + len(records)
    return log


def one_by_one(log: bytes, start: int, **options: Any) -> list[Any]:
    return Fetcher.PartitionRecords(start, TopicPartition("t", 0), MemoryRecords(log), **options).take()


class Consumer:
    """Polls what it was given."""

    def __init__(self, log: bytes, start: int = 0, **options: Any) -> None:
        self.partition = TopicPartition("t", 0)
        self.records = WholeBatches(start, self.partition, MemoryRecords(log), **options)

    def poll(self, _: int) -> dict[TopicPartition, list[Any]]:
        return {self.partition: self.records.take()}


def polled(log: bytes, start: int = 0, **options: Any) -> Polled:
    found = Polled(may_hold_rows=False)
    found.poll(Consumer(log, start, **options), 0)  # type: ignore[arg-type]
    return found


def rows_of(records: Records) -> list[tuple[Any, ...]]:
    return [
        (offset, time_ms, key, value, list(records.headers.get(place, ())))
        for place, (offset, time_ms, key, value) in enumerate(
            zip(
                records.offsets.tolist(),
                records.timestamps_ms.tolist(),
                records.keys.to_pylist(),
                records.values.to_pylist(),
                strict=True,
            )
        )
    ]


def rows_between(found: Polled, start: int, end: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while found.next_offset is not None and found.next_offset < end:
        rows += rows_of(found.take(start, end))
    return rows


@settings(max_examples=examples(300), deadline=None)
@given(batches, st.integers(0, 400), st.lists(st.integers(0, 400), max_size=3))
def test_ranges_have_the_records_of_kafka_python(
    made: list[tuple[list[Sent], int, int]], start: int, more: list[int]
) -> None:
    log = log_of(made)
    expected = [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in one_by_one(log, start)
    ]
    found, ends = polled(log, start), [start, *sorted(start + each for each in more), 10_000]
    for first, end in pairwise(ends):
        assert rows_between(found, first, end) == [row for row in expected if first <= row[0] < end]


def test_many_records_are_decoded_some_at_a_time_and_the_rest_is_kept() -> None:
    size = ROWS_AT_ONCE * 3 // 10
    per_batch = [Sent(NOW_MS, b"k", b"%d" % number, []) for number in range(size)]
    log = b"".join(bytes_of(per_batch, size * number) for number in range(5))
    found, end = polled(log), 5 * size
    first = found.take(10, end - 1)
    assert first.offsets.tolist() == list(range(10, 4 * size))
    assert len(first) <= ROWS_AT_ONCE + size
    assert found.take(4 * size, end - 1).offsets.tolist() == list(range(4 * size, end - 1))
    assert found.next_offset == end - 1
    assert found.take(end - 1, end).values.to_pylist() == [b"%d" % (size - 1)]
    assert found.next_offset is None


def test_one_batch_of_very_many_records_is_decoded_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count, sizes = 2 * ROWS_AT_ONCE + 7, list[int]()
    batch = DefaultRecordBatch(bytes_of([Sent(NOW_MS + n, None, b"%d" % n, []) for n in range(count)], 100))

    def spied(batches: Any) -> Records:
        records = decoded(batches)
        sizes.append(len(records))
        return records

    monkeypatch.setattr(incoming, "decoded", spied)
    polled, found = Polled(may_hold_rows=False), list[tuple[int, int, bytes]]()
    polled._batches.append(batch)
    begins = [100]
    for end in (105, 100 + ROWS_AT_ONCE, 150 + ROWS_AT_ONCE, 100 + count):
        while (at := polled.next_offset) is not None and at < end:
            begins.append(at)
            records = polled.take(100, end)
            found += zip(
                records.offsets.tolist(),
                records.timestamps_ms.tolist(),
                records.values.to_pylist(),
                strict=True,
            )
    assert found == [(100 + n, NOW_MS + n, b"%d" % n) for n in range(count)]
    assert begins == sorted(begins), "what was taken is never said to be left"
    assert sizes == [ROWS_AT_ONCE, ROWS_AT_ONCE, 7]


def test_of_a_large_batch_with_a_damaged_record_the_part_around_it_is_unread() -> None:
    count = 2 * ROWS_AT_ONCE
    made = bytearray(bytes_of([Sent(NOW_MS, None, b"%08d" % n, []) for n in range(count)], 100))
    at = made.index(b"%08d" % (count - 3))
    made[at - 1] = 0x7F  # the length of its value
    polled = Polled(may_hold_rows=False)
    polled._batches.append(DefaultRecordBatch(made))
    first, second = polled.take(0, 1 << 40), polled.take(0, 1 << 40)
    assert (len(first.unread), len(second.unread)) == (0, ROWS_AT_ONCE)
    assert second.offsets.tolist() == list(range(100 + ROWS_AT_ONCE, 100 + count))


def test_aborted_transactions_and_what_ends_them_are_left_out() -> None:
    class Aborted(NamedTuple):
        producer_id: int
        first_offset: int

    def of(producer_id: int) -> dict[str, Any]:
        return {
            "is_transactional": True,
            "producer_id": producer_id,
            "producer_epoch": 0,
            "base_sequence": 0,
        }

    row = [Sent(NOW_MS, b"k", b"v", [])]
    abort = bytearray(bytes_of([Sent(NOW_MS, bytes(4), bytes(6), [])], 3, **of(7)))
    abort[22] |= DefaultRecordBatch.CONTROL_MASK
    log = bytes_of(row * 2, 0, **of(7)) + bytes_of(row, 2, **of(8)) + bytes(abort) + bytes_of(row, 4, **of(7))
    options = {"isolation_level": 1, "aborted_transactions": [Aborted(7, 0)], "check_crcs": False}
    assert [record.offset for record in one_by_one(log, 0, **options)] == [2, 4]
    assert [row[0] for row in rows_between(polled(log, **options), 0, 10)] == [2, 4]


def test_the_brokers_time_is_that_of_all_of_a_batch() -> None:
    log = bytearray(bytes_of([Sent(NOW_MS + number, None, b"v", []) for number in range(3)], 0))
    log[22] |= DefaultRecordBatch.TIMESTAMP_TYPE_MASK
    [first, *others] = rows_between(polled(bytes(log), check_crcs=False), 0, 10)
    assert {row[1] for row in (first, *others)} == {NOW_MS + 2}


@pytest.mark.parametrize("at", [61, 65, 69, -1], ids=["record", "key", "value", "headers"])
def test_records_of_a_batch_that_is_not_as_it_says_are_unread_and_others_are_read(at: int) -> None:
    """Also one whose checksum is right: its writer has made it wrong."""
    data = bytearray(bytes_of([Sent(NOW_MS, b"key", b"value", [])] * 2, 0))
    data[at] ^= 0x55  # how long, or how many
    behind = bytes_of([Sent(NOW_MS, b"key", b"value", [])], 2)
    records = decoded([DefaultRecordBatch(data), DefaultRecordBatch(behind)])
    assert records.offsets.tolist() == [0, 1, 2]
    assert list(records.unread) == [0, 1]
    assert records.values[2].as_py() == b"value"


def test_the_name_of_a_header_may_be_any_bytes() -> None:
    """A client in C writes what it is given. No element must stand still for that, or lose records."""
    records = [Sent(NOW_MS, b"k", b"before", []), Sent(NOW_MS, b"k", b"value", [("~~", b"h"), ("~~", None)])]
    log = bytes_of(records, 0).replace(b"~~", b"\xff\xfe")
    names = ["\\xff\\xfe"] * 2
    found = rows_of(decoded([DefaultRecordBatch(log)]))
    assert [(value, [name for name, _ in headers]) for *_, value, headers in found] == [
        (b"before", []),
        (b"value", names),
    ]
    one, other = DefaultRecordBatch(log)
    assert (one.value, other.value, [name for name, _ in other.headers]) == (b"before", b"value", names)


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from([0, 1, 30, 60, 130, 9_000, 20_000])),
        min_size=1,
        max_size=9,
    )
)
def test_where_records_of_text_begin_is_seen_at_a_glance(shapes: list[tuple[int, int]]) -> None:
    """It has to agree with what their lengths say, and to give up where a length has three bytes."""
    records = [Sent(NOW_MS + age, b"key", b"{" + b"x" * size + b"}", []) for age, size in shapes]
    bodies = [bytes_of(records, 0)[61:]] * 2
    data, counts = b"".join(bodies), [len(records)] * len(bodies)
    expected = incoming._begins_one_by_one(data, [len(body) for body in bodies], counts)
    likely = incoming._likely_begins(data)
    assert likely.tolist() in (expected.tolist(), [])
    assert len(likely) or any(size > 8_000 for _, size in shapes)


def test_a_record_is_no_longer_than_its_parts() -> None:
    data = bytearray(bytes_of([Sent(NOW_MS, b"key", b"valu\0", [])] * 2, 0))
    assert data[69] == 5 << 1
    data[69] = 4 << 1  # what is left is taken for a record without headers
    assert "the parts" in decoded([DefaultRecordBatch(data)]).unread[0]


def test_another_checksum_is_noticed_before() -> None:
    data = bytearray(bytes_of([Sent(NOW_MS, b"key", b"value", [])], 0))
    data[-3] ^= 1
    with pytest.raises(CorruptRecordError, match="crc"):
        polled(bytes(data))


def test_records_of_an_old_format_say_what_to_do() -> None:
    data = bytearray(bytes_of([Sent(NOW_MS, b"key", b"value", [])], 0))
    data[16] = 1
    with pytest.raises(CorruptRecordError, match="a new topic"):
        polled(bytes(data))


def test_a_batch_of_which_compaction_has_left_nothing_is_passed_over() -> None:
    empty = bytearray(bytes_of([Sent(NOW_MS, b"k", b"v", [])], 3)[:61])
    empty[8:12] = (61 - 12).to_bytes(4, "big")
    empty[57:61] = bytes(4)
    behind = bytes_of([Sent(NOW_MS, b"k", b"v", [])], 4)
    assert rows_between(polled(bytes(empty), check_crcs=False), 0, 10) == []
    rows = rows_between(polled(bytes(empty) + behind, check_crcs=False), 0, 10)
    assert [row[0] for row in rows] == [4]


def test_a_range_that_cannot_be_decoded_is_named_and_its_consumer_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = bytearray(bytes_of([Sent(NOW_MS, b"key", b"value", [])], 0))
    data[16] = 1
    consumer: Any = Consumer(bytes(data))
    consumer.position = lambda _: 0
    reader = PartitionReader(KafkaSettings("nowhere:1"), "old", 3)
    reader._consumer = consumer
    monkeypatch.setattr(reader, "_at", lambda *_: consumer)
    monkeypatch.setattr(partition_reader, "close_spent", lambda _: None)
    with pytest.raises(RangeUnreadable, match=r"old-3, between the offsets 0 and 5: .*a new topic"):
        list(reader.read(0, 5))
    assert reader._consumer is None


@given(st.lists(sent, min_size=1, max_size=12), st.data())
def test_some_of_the_records_keep_their_headers(records: list[Sent], data: st.DataObject) -> None:
    found = decoded([DefaultRecordBatch(bytes_of(records, 5))])
    places = data.draw(st.sets(st.sampled_from(range(len(records)))).map(sorted))
    rows = rows_of(found)
    assert rows_of(found.taken(places)) == [rows[place] for place in places]


def test_a_text_does_not_reach_into_the_next_record() -> None:
    """Otherwise each of many records could claim the whole batch, which then takes its size times as much."""
    data = bytes([7 << 1, *b"abc", 3 << 1, *b"abc"])
    fields = incoming._Fields(data, np.array([0, 4]))
    with pytest.raises(CorruptRecordError, match="longer than its record"):
        fields.texts(np.array([4, 8]))


def test_what_only_ends_a_transaction_is_passed_without_a_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is far away would cost each batch two round trips more."""
    log = bytes_of([Sent(NOW_MS, b"k", b"v", [])] * 3, 6)
    consumer: Any = Consumer(log, 6)
    consumer.position = lambda _: 6
    consumer._cluster = SimpleNamespace(topic_id=lambda _: None)
    monkeypatch.setattr(consumer, "poll", lambda _: {})
    reader = PartitionReader(KafkaSettings("nowhere:1"), "t", 0)
    reader._consumer, reader._next = consumer, 5  # at 5 a transaction ends
    assert reader.ahead(5) is None
    monkeypatch.undo()
    found = [
        row for records in reader.read(5, 8) for row in rows_of(records)
    ]  # there is nothing to seek with
    assert [offset for offset, *_ in found] == [6, 7]


def reader_with_ids(monkeypatch: pytest.MonkeyPatch, ids: list[str]) -> tuple[PartitionReader, list[str]]:
    """A reader at offset 0 of a topic that has these ids, one after the other, each time somebody asks.
    Returns also those that were asked for. Each of two polls brings two batches, decoded one by one."""
    monkeypatch.setattr(incoming, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(partition_reader, "close_spent", lambda _: None)
    one, asked, polls = Sent(NOW_MS, b"k", b"v", []), [], iter([(0, 1), (2, 3)])

    def poll(_: int) -> dict[str, list[Any]]:
        batches = [DefaultRecordBatch(bytes_of([one], offset)) for offset in next(polls)]
        return {"t": [SimpleNamespace(value=SimpleNamespace(batch=batch)) for batch in batches]}

    consumer: Any = SimpleNamespace(poll=poll, position=lambda _: 2)
    consumer._cluster = SimpleNamespace(topic_id=lambda _: asked[-1], refresh_metadata=None)
    consumer._net = SimpleNamespace(run=lambda _: asked.append(ids.pop(0)))
    reader = PartitionReader(KafkaSettings("nowhere:1"), "t", 0)
    reader._consumer, reader._next = consumer, 0
    return reader, asked


def test_the_topics_id_is_asked_for_once_for_all_that_a_poll_has_brought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, asked = reader_with_ids(monkeypatch, ["x", "x"])
    assert not reader.is_of("x"), "nobody has asked"
    for begin in range(2):
        assert reader.ahead(begin, "x") is not None
        assert reader.is_of("x")
    assert asked == ["x"]
    assert not reader.is_of("y")
    assert reader.ahead(2, "x") is not None
    assert asked == ["x", "x"], "what was polled later may be another topic's"


def test_nothing_is_read_ahead_of_another_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, _ = reader_with_ids(monkeypatch, ["x", "y"])
    assert reader.ahead(0, "x") is not None
    assert reader.ahead(1, "x") is not None
    assert reader.ahead(2, "x") is None
    assert not reader.is_of("x")
    assert reader._consumer is None
