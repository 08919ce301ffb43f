"""Passes many records to a producer at a twentieth of the cost of `KafkaProducer.send`.

For every record `send` takes locks, makes a future and hashes the key. That takes 20 us, which is most of
what a 1:1 element costs. Here whole batches are encoded at once and put where `send` puts its own batches. So
everything after that (sequence numbers, retries, transactions) is kafka-python's. Unusual records go through
`send`.

This uses internals of kafka-python. tests/unit/kafka compares its bytes with those of `send`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from time import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from kafka import KafkaProducer, TopicPartition
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder

from pipeline_runtime.kafka.arrow_batches import ROWS_MIN, Rows, compressed, encoded
from pipeline_runtime.kafka.record_batches import Body, Columns, bodies, bodies_of_few

FEW = 64
"""Up to so many records of a partition are encoded faster one by one: columns cost by the call."""


class OutgoingRecord(NamedTuple):  # takes a third of the time that a frozen dataclass takes to make
    topic: str
    value: bytes
    key: bytes | None = None
    timestamp_ms: int | None = None
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Returns whether the key alone chooses the partition, and there is no header."""
        return self.partition is None and not self.headers


@dataclass(frozen=True)
class OutgoingRows:
    """Many plain records of one topic, as columns. Rows are written as columns, too, if they are many."""

    topic: str
    columns: Columns | Rows

    def records(self, partition: int | None = None) -> Iterator[OutgoingRecord]:
        """Yields the same as records of that partition."""
        columns = _as_json(self.columns)
        keys, values = columns.keys.to_pylist(), columns.values.to_pylist()
        for key, value, time_ms in zip(keys, values, columns.times_ms.tolist(), strict=True):
            yield OutgoingRecord(self.topic, value, key, time_ms, partition)


@dataclass(frozen=True)
class OutgoingBodies:
    """Rows that are encoded already, for a topic of one partition."""

    topic: str
    bodies: Sequence[Body]


Outgoing = OutgoingRecord | OutgoingRows | OutgoingBodies


def send_all(producer: KafkaProducer, outgoing: Iterable[Outgoing]) -> list[Any]:
    """Sends the records in order (per partition) by a transactional or idempotent producer. Returns futures
    that fail if their records were not written."""
    by_topic: defaultdict[str, list[Outgoing]] = defaultdict(list)
    for each in outgoing:
        by_topic[each.topic].append(each)
    futures: list[Any] = []
    for topic, mine in by_topic.items():
        for kind, several in groupby(mine, _kind):
            records: list[Any] = list(several)
            if kind is OutgoingRows:
                for rows in records:
                    futures += _send_columns(producer, topic, rows.columns)
            elif kind is OutgoingBodies:
                producer.partitions_for(topic)  # who leads them has to be known
                for each in records:
                    futures += _send_bodies(producer, TopicPartition(topic, 0), each.bodies)
            elif kind is OutgoingRecord and len(records) > 1:
                futures += _send_columns(producer, topic, columns_of(records))
            else:
                futures += [_send(producer, record) for record in records]
    # Only once, so that everything for one broker is one request. Each request costs a new owner a round
    # trip.
    producer._sender.wakeup()
    return futures


def _kind(each: Outgoing) -> type | None:
    """Returns None for a record that only `send` can handle."""
    return None if isinstance(each, OutgoingRecord) and not each.is_plain else type(each)


def columns_of(records: Sequence[OutgoingRecord]) -> Columns:
    """Returns plain records of one topic as columns."""
    now_ms = int(time() * 1000)
    times_ms = [now_ms if each.timestamp_ms is None else each.timestamp_ms for each in records]
    return Columns(
        pa.array([each.key for each in records], pa.binary()),
        pa.array([each.value for each in records], pa.binary()),
        np.array(times_ms, np.int64),
    )


def _send(producer: KafkaProducer, record: OutgoingRecord) -> Any:
    return producer.send(
        record.topic,
        value=record.value,
        key=record.key,
        headers=list(record.headers) or None,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
    )


def _as_json(columns: Columns | Rows) -> Columns:
    return columns.as_json() if isinstance(columns, Rows) else columns


def _send_columns(producer: KafkaProducer, topic: str, columns: Columns | Rows) -> list[Any]:
    futures: list[Any] = []
    for partition, mine in _by_partition(producer, topic, columns):
        if partition is None:
            futures += [_send(producer, record) for record in OutgoingRows(topic, mine).records()]
        elif isinstance(mine, Rows) and len(mine) >= ROWS_MIN:
            tp = TopicPartition(topic, partition)
            futures += _send_bodies(producer, tp, encoded(mine, producer.config["batch_size"]))
        else:
            futures += _send_run(producer, TopicPartition(topic, partition), _as_json(mine))
    return futures


def _send_bodies(producer: KafkaProducer, partition: TopicPartition, many: Iterable[Body]) -> list[Any]:
    futures: list[Any] = []
    for body in many:
        futures.append(enqueue(producer, batch_of(producer, partition, body)))
        producer._sender.wakeup()  # a full batch need not wait for the next one
    return futures


def _by_partition(
    producer: KafkaProducer, topic: str, columns: Columns | Rows
) -> Iterator[tuple[int | None, Columns | Rows]]:
    """Yields the records of each partition. None stands for those without a key on a topic with several
    partitions: the producer chooses for each."""
    partitions = producer.partitions_for(topic)
    if partitions is not None and len(partitions) == 1:
        yield next(iter(partitions)), columns
        return
    coded = columns.keys.dictionary_encode()
    of_key = [producer._partition(topic, None, key, b"", key, b"") for key in coded.dictionary.to_pylist()]
    # The last place is that of records without a key.
    found = np.array([*of_key, -1], np.int64)[coded.indices.fill_null(len(of_key)).to_numpy()]
    for partition in np.unique(found).tolist():
        mine = columns.take(np.flatnonzero(found == partition))
        yield (None if partition < 0 else partition), mine


def _send_run(producer: KafkaProducer, partition: TopicPartition, columns: Columns) -> list[Any]:
    """Sends records of one partition."""
    batch_bytes = producer.config["batch_size"]
    futures: list[Any] = []
    begin = 0
    # `send` can handle a record that is larger than a batch, or too large for the broker.
    large = np.flatnonzero(columns.sizes() > batch_bytes // 4).tolist()
    for end in [*large, len(columns)]:
        usual = columns.slice(begin, end)
        if len(usual) > FEW:
            futures += _send_bodies(producer, partition, bodies(usual, batch_bytes))
        elif len(usual):
            few = bodies_of_few(usual, batch_bytes)
            futures += [enqueue(producer, batch_of(producer, partition, body)) for body in few]
        large_one = OutgoingRows(partition.topic, columns.slice(end, min(end + 1, len(columns))))
        futures += [_send(producer, each) for each in large_one.records(partition.partition)]
        begin = end + 1
    return futures


def empty_batch(producer: KafkaProducer, partition: TopicPartition) -> ProducerBatch:
    compression = producer._accumulator.config["compression_attrs"]
    return ProducerBatch(partition, MemoryRecordsBuilder(2, compression, producer.config["batch_size"]))


def batch_of(producer: KafkaProducer, partition: TopicPartition, body: Body) -> ProducerBatch:
    """Returns a batch of records that are encoded already."""
    batch = empty_batch(producer, partition)
    fill(batch, body)
    return batch


def fill(batch: ProducerBatch, body: Body) -> None:
    """Puts the records into an empty batch."""
    builder = batch.records._builder
    if body.is_columns:
        builder = batch.records._builder = _ColumnsBuilder(builder)
        builder.put(body)
    else:
        builder._buffer += body.data
    builder._num_records = body.count
    builder._last_offset = body.count - 1
    builder._first_timestamp, builder._max_timestamp = body.first_ms, body.newest_ms
    batch.records._next_offset = body.count
    batch._record_futures.append(
        FutureRecordMetadata(batch.produce_future, 0, body.first_ms, None, -1, -1, -1)
    )


class _ColumnsBuilder(DefaultRecordBatchBuilder):
    """Holds a batch of rows as columns."""

    def __init__(self, usual: DefaultRecordBatchBuilder) -> None:
        """`usual`: the empty builder whose place it takes."""
        super().__init__(2, usual._compression_type, False, -1, -1, -1, usual._batch_size)
        self._is_compressed = False

    def put(self, body: Body) -> None:
        if self._compression_type == self.CODEC_ZSTD:
            body = compressed(body)
        self._is_compressed = body.is_packed
        self._buffer += body.data

    def append(self, *_: Any) -> None:
        """Has no room: the rows could not be read with another record behind them."""

    def _maybe_compress(self) -> bool:
        return self._is_compressed or super()._maybe_compress()


def enqueue(producer: KafkaProducer, batch: ProducerBatch) -> Any:
    """Appends a whole batch as RecordAccumulator.append does with a record. The sender is not woken. Returns
    a future of the batch."""
    accumulator, partition = producer._accumulator, batch.topic_partition
    if producer._transaction_manager.is_transactional():
        producer._transaction_manager.maybe_add_partition_to_transaction(partition)
    with accumulator._tp_lock(partition):
        accumulator._batches[partition].append(batch)
        accumulator._incomplete.add(batch)
    return batch._record_futures[0]
