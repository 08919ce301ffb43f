"""Passes many records to a producer at a tenth of the cost of `KafkaProducer.send`.

For every record `send` takes locks, makes a future and hashes the key. That takes 20 us, which is most of
what a 1:1 element costs. Here whole batches are encoded at once and put where `send` puts its own batches. So
everything after that (sequence numbers, retries, transactions) is kafka-python's. Unusual records go through
`send`.

This uses internals of kafka-python. tests/unit/kafka compares its bytes with those of `send`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time
from typing import Any, NamedTuple

from kafka import KafkaProducer, TopicPartition
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.record.util import encode_varint


class OutgoingRecord(NamedTuple):  # takes a third of the time that a frozen dataclass takes to make
    topic: str
    value: bytes
    key: bytes | None = None
    timestamp_ms: int | None = None
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def send_all(producer: KafkaProducer, records: Iterable[OutgoingRecord]) -> list[Any]:
    """Sends the records in order (per partition) by a transactional or idempotent producer. Returns futures
    that fail if their records were not written."""
    futures: list[Any] = []
    for partition, run in _by_partition(producer, records).items():
        if partition is None:
            futures += [_send(producer, record, record.partition) for record in run]
        else:
            futures += _send_run(producer, partition, run)
    # Only once, so that everything for one broker is one request. Each request costs a new owner a round
    # trip.
    producer._sender.wakeup()
    return futures


def _by_partition(
    producer: KafkaProducer, records: Iterable[OutgoingRecord]
) -> dict[TopicPartition | None, list[OutgoingRecord]]:
    """Returns the records by partition. Under None are records without a key on topics with several
    partitions: the producer chooses for those."""
    topics: dict[str, _Topic] = {}
    for record in records:
        topic = topics.get(record.topic)
        if topic is None:
            topic = topics[record.topic] = _Topic(producer, record.topic)
        topic.add(record)
    return {partition: run for topic in topics.values() for partition, run in topic.runs()}


class _Topic:
    """One topic's records of one batch, by partition."""

    def __init__(self, producer: KafkaProducer, name: str) -> None:
        self._producer = producer
        self._name = name
        partitions = producer.partitions_for(name)
        self._only = next(iter(partitions)) if partitions is not None and len(partitions) == 1 else None
        self._by_key: dict[bytes, int] = {}
        self._runs: dict[int | None, list[OutgoingRecord]] = {}

    def add(self, record: OutgoingRecord) -> None:
        partition = record.partition
        if partition is None:
            partition = self._only
        if partition is None and record.key is not None:
            partition = self._by_key.get(record.key)
            if partition is None:
                partition = self._producer._partition(
                    self._name, None, record.key, record.value, record.key, record.value
                )
                self._by_key[record.key] = partition
        run = self._runs.get(partition)
        if run is None:
            run = self._runs[partition] = []
        run.append(record)

    def runs(self) -> Iterable[tuple[TopicPartition | None, list[OutgoingRecord]]]:
        # Records without a partition go first, since a partition's last record may be the one that ends its
        # stream.
        for partition, run in sorted(self._runs.items(), key=lambda item: item[0] is not None):
            yield (None if partition is None else TopicPartition(self._name, partition)), run


def _send(producer: KafkaProducer, record: OutgoingRecord, partition: int | None) -> Any:
    return producer.send(
        record.topic,
        value=record.value,
        key=record.key,
        headers=list(record.headers) or None,
        partition=partition,
        timestamp_ms=record.timestamp_ms,
    )


def _send_run(producer: KafkaProducer, partition: TopicPartition, run: Sequence[OutgoingRecord]) -> list[Any]:
    accumulator = producer._accumulator
    batch_bytes, compression = producer.config["batch_size"], accumulator.config["compression_attrs"]
    now_ms = int(time() * 1000)
    futures: list[Any] = []
    position = 0
    while position < len(run):
        # `send` can handle a record that is larger than a batch, or too large for the broker.
        if position == len(run) - 1 or _is_unusual(run[position], batch_bytes):
            futures.append(_send(producer, run[position], partition.partition))
            position += 1
            continue
        batch = ProducerBatch(partition, MemoryRecordsBuilder(2, compression, batch_bytes))
        taken = fill(batch, run, position, batch_bytes, now_ms)
        futures.append(batch._record_futures[0])
        enqueue(producer, batch)
        position += taken
        if position < len(run):
            producer._sender.wakeup()  # a full batch need not wait for the next one
    return futures


def enqueue(producer: KafkaProducer, batch: ProducerBatch) -> None:
    """Appends a whole batch as RecordAccumulator.append does with a record. The sender is not woken."""
    accumulator, partition = producer._accumulator, batch.topic_partition
    if producer._transaction_manager.is_transactional():
        producer._transaction_manager.maybe_add_partition_to_transaction(partition)
    with accumulator._tp_lock(partition):
        accumulator._batches[partition].append(batch)
        accumulator._incomplete.add(batch)


def _is_unusual(record: OutgoingRecord, batch_bytes: int) -> bool:
    return bool(record.headers) or len(record.value) + len(record.key or b"") > batch_bytes // 4


def fill(
    batch: ProducerBatch, run: Sequence[OutgoingRecord], begin: int, batch_bytes: int, now_ms: int
) -> int:
    """Puts as many records from `begin` on into the empty `batch` as fit. Returns their number, 1 or more."""
    first = run[begin]
    base_ms = now_ms if first.timestamp_ms is None else first.timestamp_ms
    batch.try_append(base_ms, first.key, first.value, [])
    builder = batch.records._builder
    buffer: bytearray = builder._buffer
    newest_ms, offset, small = base_ms, 1, _VARINTS
    for index in range(begin + 1, len(run)):
        record = run[index]
        if _is_unusual(record, batch_bytes):
            break
        time_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
        delta, key, value = time_ms - base_ms, record.key, record.value
        body = b"".join(
            (
                b"\x00",  # attributes
                small[delta] if 0 <= delta < _SMALL else _varint(delta),
                small[offset] if offset < _SMALL else _varint(offset),
                _NULL if key is None else small[len(key)] + key if len(key) < _SMALL else _sized(key),
                small[len(value)] if len(value) < _SMALL else _varint(len(value)),
                value,
                b"\x00",  # number of headers
            )
        )
        size = small[len(body)] if len(body) < _SMALL else _varint(len(body))
        if len(buffer) + len(size) + len(body) > batch_bytes:
            break
        buffer += size
        buffer += body
        newest_ms = max(newest_ms, time_ms)
        offset += 1
    builder._num_records = offset
    builder._last_offset = offset - 1
    builder._max_timestamp = newest_ms
    batch.records._next_offset = offset
    return offset


def _varint(value: int) -> bytes:
    encoded = bytearray()
    encode_varint(value, encoded.append)
    return bytes(encoded)


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


_SMALL = 1 << 13
_VARINTS = [_varint(value) for value in range(_SMALL)]
_NULL = _varint(-1)
