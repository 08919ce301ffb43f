"""Load and its observer, each in a process of its own: nothing of them runs in the measured process.

They write and read with the runtime's own batches, since with a consumer and a producer of kafka-python they
would take more of the machine than what is measured.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as Flag
from time import monotonic, sleep, time
from typing import Any
from zlib import crc32

from kafka import TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.incoming import decoded, read_whole_batches
from pipeline_runtime.kafka.outgoing import OutgoingRecord, send_all
from tests.benchmarks.events import Event, up_front
from tests.benchmarks.harness import plain_producer

_TICK_S = 0.01
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


def _produce_steadily(
    bootstrap: str, topics: list[str], rate: float, seconds: float, first: int, answer: Connection
) -> None:
    """`rate` events per second into each topic, evenly, stamped with the time they were due."""
    producer = plain_producer(KafkaSettings(bootstrap))
    for topic in topics:
        producer.partitions_for(topic)
    begin, begin_ms, sent = monotonic(), time() * 1000, 0
    while (elapsed := monotonic() - begin) < seconds:
        due = int(elapsed * rate) + 1  # the first at once
        events = [Event(first + n, int(begin_ms + n * 1000 / rate)) for n in range(sent, due)]
        encoded = [(event.encode(), event.key, event.time_ms) for event in events]
        send_all(
            producer, (OutgoingRecord(topic, *each, partition=0) for each in encoded for topic in topics)
        )
        sent = max(sent, due)
        sleep(_TICK_S)
    producer.flush()
    late_s = monotonic() - begin - seconds
    producer.close()
    answer.send((sent, late_s))


def _observe(bootstrap: str, topics: list[str], ready: Flag, done: Flag, answer: Connection) -> None:
    """For each record: which topic, its timestamp, and how long after it the record could be read."""
    consumer = open_consumer(KafkaSettings(bootstrap), fetch_max_wait_ms=500, fetch_min_bytes=1)
    read_whole_batches(consumer)
    partitions = [TopicPartition(topic, 0) for topic in topics]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    consumer.poll(0)
    ready.set()
    seen: dict[str, list[tuple[int, float]]] = {topic: [] for topic in topics}
    while not done.is_set():
        for tp, polled in consumer.poll(200).items():
            now_ms = time() * 1000
            times_ms = decoded([each.value.batch for each in polled]).timestamps_ms.tolist()
            seen[tp.topic] += [(time_ms, now_ms - time_ms) for time_ms in times_ms]
    consumer.close()
    answer.send(seen)


@dataclass
class Observed:
    """Filled when the observation ends. `latencies`: topic -> (event time in ms, latency in ms)."""

    latencies: dict[str, list[tuple[int, float]]]

    def of(self, topic: str, since_ms: float) -> list[float]:
        """Latencies of records whose event time is `since_ms` or later."""
        return [latency for at_ms, latency in self.latencies.get(topic, ()) if at_ms >= since_ms]


@contextmanager
def observing(kafka: KafkaSettings, topics: list[str]) -> Iterator[Observed]:
    """Watches topics of one partition, as a read_committed consumer sees them."""
    mine, theirs = _context.Pipe()
    ready, done = _context.Event(), _context.Event()
    process = _context.Process(
        target=_observe, args=(kafka.bootstrap, topics, ready, done, theirs), daemon=True
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
    """Events first, first + 1, ... at `rate` per second into each topic."""

    def __init__(
        self, kafka: KafkaSettings, topics: list[str], rate: float, seconds: float, first: int
    ) -> None:
        self._mine, theirs = _context.Pipe()
        self._seconds = seconds
        arguments: tuple[Any, ...] = (kafka.bootstrap, topics, rate, seconds, first, theirs)
        self.process = _context.Process(target=_produce_steadily, args=arguments, daemon=True)
        self.process.start()

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
