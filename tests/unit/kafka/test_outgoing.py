"""Batches that are encoded at once are, byte for byte, those that kafka-python makes record by record."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from kafka import TopicPartition
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from pipeline_runtime.kafka.outgoing import OutgoingRecord, fill

BATCH_BYTES = 4096
NOW_MS = 1_700_000_000_000

records = st.lists(
    st.builds(
        OutgoingRecord,
        topic=st.just("t"),
        value=st.binary(max_size=300) | st.integers(0, 1024).map(bytes),
        key=st.none() | st.binary(max_size=20) | st.integers(60, 200).map(bytes),
        timestamp_ms=st.none() | st.integers(0, 2**43) | st.integers(NOW_MS, NOW_MS + 200_000),
        partition=st.none(),
        headers=st.just(()),
    ).filter(lambda record: len(record.value) + len(record.key or b"") <= BATCH_BYTES // 4),
    min_size=1,
    max_size=60,
)


def one_by_one(run: list[OutgoingRecord]) -> MemoryRecordsBuilder:
    builder = MemoryRecordsBuilder(2, 0, BATCH_BYTES)
    for record in run:
        time_ms = NOW_MS if record.timestamp_ms is None else record.timestamp_ms
        if builder.append(time_ms, record.key, record.value, []) is None:
            break
    return builder


def closed(builder: MemoryRecordsBuilder) -> bytes:
    builder.set_producer_state(7, 3, 11, True)
    builder.close()
    return bytes(builder.buffer())


@settings(max_examples=300)
@given(records)
def test_the_bytes_are_kafka_pythons_own(run: list[OutgoingRecord]) -> None:
    expected = one_by_one(run)
    batch = ProducerBatch(TopicPartition("t", 0), MemoryRecordsBuilder(2, 0, BATCH_BYTES))

    taken = fill(batch, run, 0, BATCH_BYTES, NOW_MS)

    assert taken == expected.next_offset() == batch.record_count
    assert closed(batch.records) == closed(expected)


def test_a_batch_takes_more_records_than_small_varints_reach() -> None:
    run = [OutgoingRecord("t", b"x", timestamp_ms=NOW_MS + n) for n in range(20_000)]
    batch = ProducerBatch(TopicPartition("t", 0), MemoryRecordsBuilder(2, 0, 1 << 20))
    expected = MemoryRecordsBuilder(2, 0, 1 << 20)
    for record in run:
        expected.append(record.timestamp_ms, None, b"x", [])

    assert fill(batch, run, 0, 1 << 20, NOW_MS) == len(run)
    assert closed(batch.records) == closed(expected)


def test_a_record_with_headers_ends_the_batch() -> None:
    plain, ending = OutgoingRecord("t", b"a"), OutgoingRecord("t", b"", headers=(("end", b"1"),))
    batch = ProducerBatch(TopicPartition("t", 0), MemoryRecordsBuilder(2, 0, BATCH_BYTES))

    assert fill(batch, [plain, plain, ending, plain], 0, BATCH_BYTES, NOW_MS) == 2
