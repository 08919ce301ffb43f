"""Reads topics ahead of the batches that need them.

What has just arrived is here already when a batch begins, so a batch costs no request to the broker
for where its inputs end, nor for its rows. A new owner on a slow line starts with what it has.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, OffsetOutOfRangeError

from pipeline_runtime.kafka.clients import KafkaSettings, close_spent, open_consumer

log = logging.getLogger(__name__)

AHEAD_ROWS_MAX = 2000
"""Per input group; a batch of more rows is read by Spark's tasks themselves."""
AHEAD_BYTES_MAX = 2 * 1024 * 1024
_FETCH_WAIT_MS = 1000
_POLL_MS = 500
_RETRY_S = 0.2


@dataclass
class _Partition:
    tp: TopicPartition
    first: int  # all committed records from here on to `next` are in `records`
    next: int
    records: deque[tuple[float, Any]] = field(default_factory=deque)  # (when it came, record)
    seek: bool = True

    def end(self, by_s: float) -> int:
        came = (record for at_s, record in reversed(self.records) if at_s <= by_s)
        newest = next(came, None)
        return self.first if newest is None else newest.offset + 1

    def restart(self, offset: int) -> None:
        self.first = self.next = offset
        self.records.clear()
        self.seek = True


class Prefetcher:
    """A thread from `follow` to `close`. `arrived` is called by it when there are new records."""

    def __init__(
        self, kafka: KafkaSettings, partitions: Mapping[str, TopicPartition], arrived: Callable[[], None]
    ) -> None:
        self._kafka = kafka
        self._tps = dict(partitions)
        self._arrived = arrived
        self._lock = threading.Condition()
        self._parts: dict[str, _Partition] = {}
        self._rows = self._bytes = 0
        self._held = False
        self._came = False  # something, by the last poll
        self.gather_s = 0.0
        """How long what has come may lie at the broker, so that more of it is fetched at once."""
        self._gone = False  # what comes next has been deleted from its topic
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="prefetcher", daemon=True)

    def follow(self, ends: Mapping[str, int]) -> None:
        """Begin behind what the group has processed."""
        with self._lock:
            self._parts = {key: _Partition(tp, ends[key], ends[key]) for key, tp in self._tps.items()}
        self._thread.start()

    @property
    def following(self) -> bool:
        return bool(self._parts)

    def close(self) -> None:
        """Ask the thread to end; it does within its poll of 500 ms."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()

    def hold(self, held: bool) -> None:
        """While so much waits that batches are read by Spark's tasks, nothing is read ahead."""
        with self._lock:
            self._held = held
            self._lock.notify_all()

    @property
    def full(self) -> bool:
        """There is more than is kept here: where the topics end must be asked of the broker."""
        return self._gone or self._rows >= AHEAD_ROWS_MAX or self._bytes >= AHEAD_BYTES_MAX

    def ends(self, by_s: float = inf) -> dict[str, int]:
        """Behind the newest record of each partition that has come by then (monotonic), or so far."""
        with self._lock:
            return {key: part.end(by_s) for key, part in self._parts.items()}

    def oldest_at_s(self) -> float | None:
        """When the oldest record that still waits came (monotonic)."""
        with self._lock:
            return min((part.records[0][0] for part in self._parts.values() if part.records), default=None)

    def records(self, key: str, start: int, end: int, wait_s: float = 0) -> list[Any] | None:
        """All committed records with start <= offset < end; None: they are not all here, and did not
        come within `wait_s`."""
        with self._lock:
            part = self._parts.get(key)
            if part is None or start < part.first or end - start > AHEAD_ROWS_MAX:
                return None
            self._lock.wait_for(lambda: end <= part.next or self._held or self.full or self._closing, wait_s)
            if end > part.next:
                return None
            return [record for _, record in part.records if start <= record.offset < end]

    def passed(self, ends: Mapping[str, Any]) -> None:
        """The group has processed all before `ends`."""
        with self._lock:
            for key, part in self._parts.items():
                end = ends[key]
                if end > part.next:
                    for _, record in part.records:
                        self._count(record, -1)
                    part.restart(end)
                    self._gone = False
                    continue
                while part.records and part.records[0][1].offset < end:
                    self._count(part.records.popleft()[1], -1)
                part.first = max(part.first, end)
            self._lock.notify_all()

    def _count(self, record: Any, sign: int) -> None:
        self._rows += sign
        self._bytes += sign * len(record.value or b"")

    def _run(self) -> None:
        while not self._closing:
            consumer = None
            try:
                consumer = open_consumer(
                    self._kafka,
                    fetch_max_wait_ms=_FETCH_WAIT_MS,
                    max_partition_fetch_bytes=AHEAD_BYTES_MAX,
                    fetch_max_bytes=AHEAD_BYTES_MAX,
                    auto_offset_reset="none",
                )
                consumer.assign(list(self._tps.values()))
                with self._lock:
                    for part in self._parts.values():
                        part.seek = True
                while self._turn(consumer):
                    pass
            except OffsetOutOfRangeError:
                self._gone = True  # the task that is to read it will say so
                self._arrived()
            except Exception as error:
                # The broker is away, or the machine is short of something: asked again, for ever. Without
                # this thread its owner would wait for rows that are there.
                if not isinstance(error, KafkaError):
                    log.exception("reading ahead failed, and is tried again")
                with self._lock:
                    self._lock.wait(_RETRY_S)
            finally:
                if consumer is not None:
                    close_spent(consumer)

    def _turn(self, consumer: KafkaConsumer) -> bool:
        with self._lock:
            if self._came and self.gather_s:
                self._lock.wait_for(lambda: self._closing, self.gather_s)
            while not self._closing and (self._held or self.full):
                self._lock.wait(1.0)
            if self._closing:
                return False
            for part in self._parts.values():
                if part.seek:
                    consumer.seek(part.tp, part.next)
                    part.seek = False
        got = consumer.poll(_POLL_MS, max_records=AHEAD_ROWS_MAX)
        now_s = monotonic()
        with self._lock:
            for part in self._parts.values():
                if part.seek:
                    continue  # it was passed meanwhile: what came is of the past
                for record in got.get(part.tp, ()):
                    if record.offset >= part.first:
                        part.records.append((now_s, record))
                        self._count(record, 1)
                part.next = max(part.next, consumer.position(part.tp))
            self._lock.notify_all()
        self._came = bool(got)
        if got:
            self._arrived()
        return True
