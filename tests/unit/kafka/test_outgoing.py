"""Batches that are encoded at once are, byte for byte, those that kafka-python makes record by record."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from kafka import TopicPartition
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from pipeline_runtime.kafka.outgoing import OutgoingRecord, columns_of, fill
from pipeline_runtime.kafka.record_batches import bodies

BATCH_BYTES = 4096
NOW_MS = 1_700_000_000_000

records = st.lists(
    st.builds(
        OutgoingRecord,
        topic=st.just("t"),
        value=st.binary(max_size=300) | st.integers(0, 1024).map(bytes),
        key=st.none() | st.binary(max_size=20) | st.integers(60, 200).map(bytes),
        timestamp_ms=st.integers(-(2**43), 2**43) | st.integers(NOW_MS, NOW_MS + 200_000),
        partition=st.none(),
        headers=st.just(()),
    ).filter(lambda record: len(record.value) + len(record.key or b"") <= BATCH_BYTES // 4),
    min_size=1,
    max_size=60,
)


def one_by_one(run: list[OutgoingRecord], bytes_max: int) -> bytes:
    builder = MemoryRecordsBuilder(2, 0, bytes_max)
    for record in run:
        assert builder.append(record.timestamp_ms, record.key, record.value, []) is not None
    return closed(builder)


def closed(builder: MemoryRecordsBuilder) -> bytes:
    builder.set_producer_state(7, 3, 11, True)
    builder.close()
    return bytes(builder.buffer())


def at_once(run: list[OutgoingRecord], bytes_max: int) -> list[tuple[int, bytes]]:
    """The number of records of each batch, and its bytes."""
    made = []
    for body in bodies(columns_of(run), bytes_max):
        batch = ProducerBatch(TopicPartition("t", 0), MemoryRecordsBuilder(2, 0, 2 * bytes_max))
        fill(batch, body)
        made.append((batch.record_count, closed(batch.records)))
    return made


@settings(max_examples=300)
@given(records)
def test_the_bytes_are_kafka_pythons_own(run: list[OutgoingRecord]) -> None:
    position = 0
    for count, made in at_once(run, BATCH_BYTES):
        assert made == one_by_one(run[position : position + count], 2 * BATCH_BYTES)
        assert len(made) <= BATCH_BYTES or count == 1
        position += count
    assert position == len(run)


def test_a_batch_takes_more_records_than_small_varints_reach() -> None:
    run = [OutgoingRecord("t", b"x", timestamp_ms=NOW_MS + n) for n in range(20_000)]

    assert at_once(run, 1 << 20) == [(20_000, one_by_one(run, 1 << 20))]


def test_batches_are_nearly_full() -> None:
    run = [OutgoingRecord("t", b"value" * 10, b"key", NOW_MS + n) for n in range(20_000)]
    *full, _ = at_once(run, 1 << 16)

    assert all(len(made) > 0.9 * (1 << 16) for _, made in full)
