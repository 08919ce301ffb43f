"""Load on the input, and an observer of the output, each in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import monotonic, time
from typing import Any

from kafka import KafkaProducer, TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer

ACTIVE_KEYS = 500
RATE = 200.0  # events per second
TICK_S = 0.01
_ANSWER_S = 120.0
_context = multiprocessing.get_context("spawn")

Row = dict[str, Any]


def send_rows(bootstrap: str, topic: str, rows: Iterable[Row]) -> int:
    """Sends rows as fast as possible. Returns their number when all are acknowledged."""
    producer = _producer(bootstrap)
    count = 0
    for row in rows:
        producer.send(topic, json.dumps(row).encode(), row["k"].encode(), partition=0)
        count += 1
    producer.flush()
    producer.close()
    return count


def idle_keys(count: int, pad: int = 1024) -> Iterable[Row]:
    return ({"k": f"idle-{number:06d}", "n": number, "pad": pad} for number in range(count))


def _producer(bootstrap: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        acks="all",
        linger_ms=0,
        retry_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        metrics_enabled=False,
    )


def _active(n: int) -> Row:
    return {"k": f"k{n % ACTIVE_KEYS:03d}", "n": n, "pad": 0}


def _load(bootstrap: str, topic: str, rate: float, tick_s: float, commands: Connection) -> None:
    producer = _producer(bootstrap)
    producer.partitions_for(topic)
    begin, sent = monotonic(), 0
    while not commands.poll(tick_s):
        due = int((monotonic() - begin) * rate)
        for n in range(sent, due):
            row = _active(n)
            producer.send(topic, json.dumps(row).encode(), row["k"].encode(), partition=0)
        sent = max(sent, due)
    producer.flush()
    producer.close()
    commands.send(sent)


class Load:
    """Sends `rate` events per second, evenly over ACTIVE_KEYS keys, until it is finished. What is due is sent
    every `tick_s`."""

    def __init__(self, bootstrap: str, topic: str, rate: float = RATE, tick_s: float = TICK_S) -> None:
        self._mine, theirs = _context.Pipe()
        self._process = _context.Process(
            target=_load, args=(bootstrap, topic, rate, tick_s, theirs), daemon=True
        )
        self._process.start()

    def finish(self) -> int:
        """Returns the number of events sent."""
        try:
            self._mine.send("finish")
            if not self._mine.poll(_ANSWER_S):
                raise TimeoutError("the load does not end")
            return int(self._mine.recv())
        finally:
            self._process.kill()
            self._process.join()


def _observe(bootstrap: str, topic: str, commands: Connection) -> None:
    consumer = open_consumer(
        KafkaSettings(bootstrap), max_poll_records=50_000, fetch_max_wait_ms=500, fetch_min_bytes=1
    )
    part = TopicPartition(topic, 0)
    consumer.assign([part])
    consumer.seek_to_beginning(part)
    seen: list[tuple[float, int]] = []
    count = 0
    while True:
        records = consumer.poll(100).get(part, [])
        if records:
            count += len(records)
            seen.append((monotonic(), count))
        if commands.poll(0):
            if commands.recv() == "finish":
                break
            commands.send(seen)
    consumer.close()


class Observer:
    """One read_committed consumer directly at the broker. It notes when how many outputs could be read."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._mine, theirs = _context.Pipe()
        self._process = _context.Process(target=_observe, args=(bootstrap, topic, theirs), daemon=True)
        self._process.start()
        self.seen()

    def seen(self) -> list[tuple[float, int]]:
        """Returns (when, outputs until then), rising. Times are those of the machine's monotonic clock."""
        self._mine.send("seen")
        if not self._mine.poll(_ANSWER_S):
            raise TimeoutError("the observer does not answer")
        found: list[tuple[float, int]] = self._mine.recv()
        return found

    def close(self) -> None:
        self._mine.send("finish")
        self._process.join(5)
        self._process.kill()
        self._process.join()


@dataclass(frozen=True)
class Stopwatch:
    """Both clocks at one moment: journal times are the broker's, all others monotonic."""

    monotonic_s: float
    wall_s: float

    @staticmethod
    def now() -> Stopwatch:
        return Stopwatch(monotonic(), time())
