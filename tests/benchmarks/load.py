"""Load and its observer, each in a process of its own: nothing of them runs in the measured process.

They write and read with the runtime's own batches, since with a consumer and a producer of kafka-python they
would take more of the machine than what is measured.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as Flag
from time import monotonic, sleep, time
from typing import Any
from zlib import crc32

from kafka import KafkaProducer, TopicPartition
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.incoming import records_in
from pipeline_runtime.kafka.outgoing import OutgoingRecord, columns_of
from pipeline_runtime.kafka.record_batches import Body, bodies
from pipeline_runtime.kafka.whole_batches import read_whole_batches
from tests.benchmarks.events import Event, up_front
from tests.benchmarks.harness import plain_producer

_TOGETHER_S = 0.005
_READY_S = 300.0  # millions of events are encoded before the first is due
_context = multiprocessing.get_context("spawn")


def produce_up_front(kafka: KafkaSettings, topic: str, count: int, partitions: int = 1) -> None:
    """All of a key into one partition."""
    producer = plain_producer(kafka)
    try:
        for event in up_front(count):
            partition = crc32(event.key) % partitions
            producer.send(topic, event.encode(), event.key, partition=partition, timestamp_ms=event.time_ms)
        producer.flush()
    finally:
        producer.close()


@dataclass(frozen=True)
class _Due:
    """Events that are sent together, encoded before: that costs ten times what it takes to send them."""

    at_s: float  # when the last of them is due, from the load's begin
    count: int
    batches: list[ProducerBatch]  # stamped with milliseconds from the load's begin

    def send(self, producer: KafkaProducer, begin_ms: int) -> None:
        for batch in self.batches:
            builder = batch.records._builder
            builder._first_timestamp += begin_ms  # that of each record is the distance from it
            builder._max_timestamp += begin_ms
            batch.created = monotonic()
            _enqueue(producer, batch)
        producer._sender.wakeup()


def _batch_of(producer: KafkaProducer, partition: TopicPartition, body: Body) -> ProducerBatch:
    """A batch of records that are encoded already: a load that encodes while it sends would be late."""
    compression = producer._accumulator.config["compression_attrs"]
    batch = ProducerBatch(partition, MemoryRecordsBuilder(2, compression, producer.config["batch_size"]))
    builder = batch.records._builder
    builder._buffer += body.data
    builder._num_records, builder._last_offset = body.count, body.count - 1
    builder._first_timestamp, builder._max_timestamp = body.first_ms, body.newest_ms
    batch.records._next_offset = body.count
    batch._record_futures.append(
        FutureRecordMetadata(batch.produce_future, 0, body.first_ms, None, -1, -1, -1)
    )
    return batch


def _enqueue(producer: KafkaProducer, batch: ProducerBatch) -> None:
    accumulator, partition = producer._accumulator, batch.topic_partition
    with accumulator._tp_lock(partition):
        accumulator._batches[partition].append(batch)
        accumulator._incomplete.add(batch)


def _steady(
    producer: KafkaProducer, topics: list[str], rate: float, seconds: float, first: int
) -> Iterator[_Due]:
    """Events that are due within _TOGETHER_S of each other are one _Due."""
    together = max(1, int(rate * _TOGETHER_S))
    count = math.ceil(rate * seconds)
    for begin in range(0, count, together):
        numbers = range(begin, min(begin + together, count))
        events = [Event(first + n, int(n * 1000 / rate)) for n in numbers]
        encoded = [(event.encode(), event.key, event.time_ms) for event in events]
        batches = []
        for topic in topics:
            columns = columns_of([OutgoingRecord(topic, *each) for each in encoded])
            for body in bodies(columns, producer.config["batch_size"]):
                batches.append(_batch_of(producer, TopicPartition(topic, 0), body))
        yield _Due(numbers[-1] / rate, len(events), batches)


def _produce_steadily(
    bootstrap: str, topics: list[str], rate: float, seconds: float, first: int, answer: Connection
) -> None:
    """`rate` events per second into each topic, evenly, stamped with the time they were due."""
    producer = plain_producer(KafkaSettings(bootstrap))
    for topic in topics:
        producer.partitions_for(topic)
    ready = list(_steady(producer, topics, rate, seconds, first))
    gc.freeze()
    answer.send("ready")
    begin_ms = int(time() * 1000) + 1  # a whole one: none is stamped earlier than it is due
    begin, sent = monotonic() + begin_ms / 1000 - time(), 0
    for due in ready:
        sleep(max(0.0, begin + due.at_s - monotonic()))
        due.send(producer, begin_ms)
        sent += due.count
    producer.flush()
    late_s = max(0.0, monotonic() - begin - seconds)
    producer.close()
    answer.send((sent, late_s))


NumberOf = Callable[[bytes], int]


def _observe(
    bootstrap: str,
    topics: list[str],
    number_of: NumberOf | None,
    ready: Flag,
    done: Flag,
    answer: Connection,
) -> None:
    """For each record: which topic, its timestamp, and how long after it the record could be read. With
    `number_of`: the number of its event, and when it could be read."""
    consumer = open_consumer(KafkaSettings(bootstrap), fetch_max_wait_ms=500, fetch_min_bytes=1)
    read_whole_batches(consumer)
    partitions = [TopicPartition(topic, 0) for topic in topics]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    consumer.poll(0)
    ready.set()
    seen: dict[str, list[tuple[int, float]]] = {topic: [] for topic in topics}
    unread: list[tuple[str, Any, float]] = []  # read when nothing is measured any more
    while not done.is_set():
        for tp, polled in consumer.poll(200).items():
            now_ms = time() * 1000
            for records in records_in([each.value.batch for each in polled], tp.topic):
                if number_of is not None:
                    unread.append((tp.topic, records.values, now_ms))
                    continue
                times_ms = records.timestamps_ms.tolist()
                seen[tp.topic] += [(time_ms, now_ms - time_ms) for time_ms in times_ms]
    consumer.close()
    for topic, values, now_ms in unread:
        seen[topic] += [(number_of(value), now_ms) for value in values.to_pylist()]
    answer.send(seen)


@dataclass
class Observed:
    """Filled when the observation ends. `latencies`: topic -> (event time in ms, latency in ms), or, where
    events are known by their number: (number, when its record could be read in ms)."""

    latencies: dict[str, list[tuple[int, float]]]

    def of(self, topic: str, since_ms: float) -> list[float]:
        """Latencies of records whose event time is `since_ms` or later."""
        return [latency for at_ms, latency in self.latencies.get(topic, ()) if at_ms >= since_ms]

    def of_numbers(self, topic: str, times_ms: Sequence[int], since_ms: float) -> list[float]:
        """The same, where events are known by their number. `times_ms`: the times of the events."""
        seen = [(times_ms[number], now_ms) for number, now_ms in self.latencies.get(topic, ())]
        return [now_ms - at_ms for at_ms, now_ms in seen if at_ms >= since_ms]


@contextmanager
def observing(
    kafka: KafkaSettings, topics: list[str], number_of: NumberOf | None = None
) -> Iterator[Observed]:
    """Watches topics of one partition, as a read_committed consumer sees them. `number_of`: for records whose
    timestamp is not the time of their event."""
    mine, theirs = _context.Pipe()
    ready, done = _context.Event(), _context.Event()
    process = _context.Process(
        target=_observe, args=(kafka.bootstrap, topics, number_of, ready, done, theirs), daemon=True
    )
    process.start()
    observed = Observed({})
    try:
        if not ready.wait(60):
            raise TimeoutError("the observer does not start")
        yield observed
        done.set()
        if not mine.poll(60):
            raise TimeoutError("the observer does not answer")
        observed.latencies = mine.recv()
        process.join(10)
    finally:
        process.kill()


class LoadProcess:
    """Events first, first + 1, ... at `rate` per second into each topic, from when it is made."""

    def __init__(
        self, kafka: KafkaSettings, topics: list[str], rate: float, seconds: float, first: int
    ) -> None:
        self._mine, theirs = _context.Pipe()
        self._seconds = seconds
        arguments: tuple[Any, ...] = (kafka.bootstrap, topics, rate, seconds, first, theirs)
        self.process = _context.Process(target=_produce_steadily, args=arguments, daemon=True)
        self.process.start()
        if not self._mine.poll(_READY_S):
            raise TimeoutError("the load does not get ready")
        self._mine.recv()

    def wait(self) -> tuple[int, float]:
        """Events per topic, and by how much the load was too slow, in seconds."""
        try:
            if not self._mine.poll(self._seconds + 120):
                raise TimeoutError("the load does not end")
            sent, late_s = self._mine.recv()
            self.process.join(10)
            return sent, late_s
        finally:
            self.process.kill()


def load_steadily(
    kafka: KafkaSettings, topics: list[str], rate: float, seconds: float, *, first: int = 0
) -> LoadProcess:
    return LoadProcess(kafka, topics, rate, seconds, first)
