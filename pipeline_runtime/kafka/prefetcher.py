"""Reads topics ahead of the batches that need them.

When a batch begins, its records are here already. So a batch needs no request to the broker to find where its
inputs end, and none for its rows. A new owner on a slow line starts with the records that it has.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from time import monotonic
from types import MappingProxyType
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import CorruptRecordError, KafkaError, OffsetOutOfRangeError

from pipeline_runtime.kafka.clients import KafkaSettings, close_spent, open_consumer, polled_by_its_thread
from pipeline_runtime.kafka.whole_batches import ManyWhole, WholeBatch

log = logging.getLogger(__name__)

AHEAD_ROWS_MAX = 2000
"""The most rows that a group keeps read ahead. Spark's tasks read larger batches themselves."""
AHEAD_BYTES_MAX = 2 * 1024 * 1024
_FETCH_WAIT_MS = 1000
_POLL_MS = 500
_RETRY_S = 0.2
_ANSWER_S = 0.02
"""An answer that takes longer has waited at the broker until there were records."""


class Portions:
    """Ends a consumer's polls early when their records are large. Few bytes may unpack to very many.

    A partition of which enough was taken is paused, so that kafka-python keeps the rest for the next poll.
    """

    def __init__(self, consumer: KafkaConsumer, bytes_max: int) -> None:
        self._consumer = consumer
        self._bytes_max = bytes_max
        self._left = bytes_max
        self._rows_left = 0
        portions = self

        class InPortions(ManyWhole):
            """What one fetch has brought of a partition."""

            def take(self, n: int | None = None) -> list[Any]:
                found: list[Any] = []
                while portions._left > 0 and portions._rows_left > 0 and (n is None or len(found) < n):
                    one = super().take(1)
                    if not one:
                        return found
                    found += one
                    portions._left -= size_of(one[0])
                    portions._rows_left -= rows_of(one[0])
                if portions._left <= 0 or portions._rows_left <= 0:
                    consumer.pause(self.topic_partition)
                return found

        consumer._fetcher.PartitionRecords = InPortions

    def poll(self, timeout_ms: int, rows_max: int) -> dict[TopicPartition, list[Any]]:
        """Returns the next records and whole batches, and no more once they have `rows_max` rows, or so many
        bytes."""
        self._left, self._rows_left = self._bytes_max, rows_max
        if paused := self._consumer.paused():
            self._consumer.resume(*paused)
        fetcher = self._consumer._fetcher
        if not fetcher._next_partition_records:
            # It may be a partition of which all was taken. For that one, kafka-python would keep back what it
            # has of those that were paused, and never fetch them again.
            fetcher._next_partition_records = None
        got: dict[TopicPartition, list[Any]] = self._consumer.poll(timeout_ms, max_records=rows_max)
        return got


def size_of(record: Any) -> int:
    """Returns how many bytes a record's key and value have, or a whole batch."""
    if isinstance(record.value, WholeBatch):
        return len(record.value.batch._buffer)
    return len(record.key or b"") + len(record.value or b"")


def first_offset_of(record: Any) -> int:
    """Returns a record's offset, or that of the first one of a whole batch."""
    return int(record.value.batch.base_offset if isinstance(record.value, WholeBatch) else record.offset)


def rows_of(record: Any) -> int:
    """Returns how many records a whole batch has, or 1."""
    return int(record.value.batch.records_count) if isinstance(record.value, WholeBatch) else 1


@dataclass(slots=True)
class _Held:
    """A record, or a whole batch."""

    at_s: float  # when it was fetched
    came_s: float  # when the oldest of those that were fetched with it came, as far as can be told
    record: Any
    first: int  # the offset of the first row that has not been passed
    next: int  # the offset behind its last row

    @property
    def rows(self) -> int:
        return self.next - self.first


@dataclass
class _Partition:
    tp: TopicPartition
    first: int  # all committed records from here to `next` are in `records`
    next: int
    records: deque[_Held] = field(default_factory=deque)
    seek: bool = True
    looked: bool = False  # the broker has said where the topic ends
    watched: bool = False  # all that lay in the topic was fetched, so what comes now has just arrived
    watched_from: int = 0  # nobody knows when the records before this offset had arrived

    def end(self, by_s: float) -> int:
        came = (held for held in reversed(self.records) if held.at_s <= by_s)
        newest = next(came, None)
        return self.first if newest is None else newest.next

    def restart(self, offset: int) -> None:
        self.first = self.next = offset
        self.records.clear()
        self.seek, self.looked, self.watched = True, False, False

    def took(self, position: int, *, answered: bool, all_of_it: bool) -> None:
        """A poll has led up to this position. `answered`: the broker has said where the topic ends.
        `all_of_it`: nothing more lay in the topic."""
        self.next = max(self.next, position)
        if not self.watched:
            self.watched_from = self.next
        self.looked = self.looked or answered
        self.watched = answered and all_of_it


class Prefetcher:
    """A thread that runs from `follow` to `close`. It calls `arrived` when there are new records."""

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
        self._came = False  # whether the last poll returned records
        self._rests_until_s = 0.0  # nothing is fetched before then (monotonic)
        self._is_resting = False
        self._polled_s = 0.0  # when the last poll was over
        self.gather_s = 0.0
        """How long records may wait at the broker, so that more of them are fetched at once."""
        self._ids: Mapping[str, str] = {}  # the ids of the topics in which the group stands
        self._gone = False  # the next records were deleted from the topic, or are damaged
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="prefetcher", daemon=True)

    def follow(self, ends: Mapping[str, int], ids: Mapping[str, str] = MappingProxyType({})) -> None:
        """Begins after what the group has processed. `ids`: those of the topics in which these positions
        are, as far as they are known."""
        with self._lock:
            self._ids = ids
            self._parts = {key: _Partition(tp, ends[key], ends[key]) for key, tp in self._tps.items()}
        self._thread.start()

    @property
    def following(self) -> bool:
        return bool(self._parts)

    def close(self) -> None:
        """Asks the thread to end, which it does within its poll of 500 ms."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()

    def hold(self, held: bool) -> None:
        """Stops reading ahead while so many records wait that Spark's tasks read the batches."""
        with self._lock:
            self._held = held
            self._lock.notify_all()

    def rest_until(self, at_s: float) -> None:
        """Fetches nothing before then (monotonic), so that a batch has the machine for itself."""
        with self._lock:
            if at_s != self._rests_until_s:
                self._rests_until_s = at_s
                self._lock.notify_all()

    @property
    def full(self) -> bool:
        """Returns whether more records wait than are kept here. Then only the broker can tell where the
        topics end."""
        return self._gone or self._rows >= AHEAD_ROWS_MAX or self._bytes >= AHEAD_BYTES_MAX

    @property
    def has_looked(self) -> bool:
        """Returns whether the broker has said what comes next in each partition since the group stands where
        it does."""
        with self._lock:
            return self.full or all(part.looked for part in self._parts.values())

    def row_bytes(self) -> float:
        """Returns how many bytes the records have that are here, on average."""
        with self._lock:
            return self._bytes / self._rows if self._rows else 0.0

    def ends(self, by_s: float = inf) -> dict[str, int]:
        """Returns the offset after the newest record of each partition that had arrived by `by_s`
        (monotonic), or by now."""
        with self._lock:
            return {key: part.end(by_s) for key, part in self._parts.items()}

    def oldest_at_s(self) -> float | None:
        """Returns when the oldest record that still waits came (monotonic), as far as can be told."""
        with self._lock:
            return min(
                (part.records[0].came_s for part in self._parts.values() if part.records), default=None
            )

    def held(self, ends: Mapping[str, int]) -> dict[str, tuple[int, int, int]]:
        """Returns for each partition how many records from `ends` on are here, and the offsets between which
        all of them are."""
        with self._lock:
            return {
                key: (
                    sum(max(0, each.next - max(each.first, ends.get(key, 0))) for each in part.records),
                    max(part.first, ends.get(key, 0)),
                    max(part.next, ends.get(key, 0)),
                )
                for key, part in self._parts.items()
            }

    def arrived_at_s(self) -> float | None:
        """Returns when the oldest record that still waits came (monotonic), as far as can be told. Returns
        None if none waits, or if one lay in its topic already when this thread came to it."""
        with self._lock:
            waiting = [part for part in self._parts.values() if part.records]
            if any(part.records[0].first < part.watched_from for part in waiting):
                return None
            return min((part.records[0].came_s for part in waiting), default=None)

    def records(self, key: str, start: int, end: int, wait_s: float = 0) -> list[Any] | None:
        """Returns all committed records with start <= offset < end, or None if they are not all here and do
        not arrive within `wait_s`. In place of many it returns a whole batch, which may have others too."""
        with self._lock:
            part = self._parts.get(key)
            if part is None or start < part.first or end - start > AHEAD_ROWS_MAX:
                return None
            self._lock.wait_for(lambda: end <= part.next or self._held or self.full or self._closing, wait_s)
            if end > part.next:
                return None
            return [held.record for held in part.records if start < held.next and held.first < end]

    def passed(self, ends: Mapping[str, Any], ids: Mapping[str, str] = MappingProxyType({})) -> None:
        """Drops records before `ends`, which the group has processed. A group that begins elsewhere, maybe in
        another topic of the same name, is followed to there. `ids` is that of `follow`."""
        with self._lock:
            moved, self._ids = ids != self._ids, ids
            for key, part in self._parts.items():
                end = ends[key]
                if moved or not part.first <= end <= part.next:
                    for held in part.records:
                        self._count(held, -1)
                    part.restart(end)
                    self._gone = False
                    continue
                while part.records and part.records[0].next <= end:
                    self._count(part.records.popleft(), -1)
                if part.records and part.records[0].first < end:
                    self._rows -= end - part.records[0].first
                    part.records[0].first = end
                part.first = max(part.first, end)
            self._lock.notify_all()

    def _is_another(self, consumer: KafkaConsumer) -> bool:
        """Whether a topic was deleted and created again, as the consumer has found out. Its fetches fail in
        between, so it asks for the ids before it gets anything of the new topic. One that has not fetched in
        between has to ask by itself."""
        known = consumer._cluster.topic_id
        return any((found := known(topic)) and str(found) != id for topic, id in self._ids.items())

    @staticmethod
    def _is_much(got: Mapping[Any, list[Any]]) -> bool:
        """Whether a poll may have left records in the topics."""
        found = [record for records in got.values() for record in records]
        rows, size = sum(map(rows_of, found)), sum(map(size_of, found))
        return rows >= AHEAD_ROWS_MAX or size >= AHEAD_BYTES_MAX // 2

    def _count(self, held: _Held, sign: int) -> None:
        self._rows += sign * held.rows
        self._bytes += sign * size_of(held.record)

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
                polled_by_its_thread(consumer)
                consumer.assign(list(self._tps.values()))
                portions = Portions(consumer, AHEAD_BYTES_MAX)
                with self._lock:
                    for part in self._parts.values():
                        part.seek, part.watched = True, False
                while self._turn(consumer, portions):
                    pass
            except (OffsetOutOfRangeError, CorruptRecordError):
                self._gone = True  # the task that has to read these records will report it
                self._arrived()
            except Exception as error:
                # The broker is away, or the machine is short of something. It is asked again, for ever:
                # without this thread the owner would wait for rows that exist.
                if not isinstance(error, KafkaError):
                    log.exception("reading ahead failed, and is tried again")
                with self._lock:
                    self._lock.wait(_RETRY_S)
            finally:
                if consumer is not None:
                    close_spent(consumer)

    def _turn(self, consumer: KafkaConsumer, portions: Portions) -> bool:
        with self._lock:
            if self._came and self.gather_s:
                self._lock.wait_for(lambda: self._closing, self.gather_s)
            has_rested = self._rest()
            was_held = False
            while not self._closing and (self._held or self.full):
                was_held = True
                for part in self._parts.values():
                    part.watched = False
                self._lock.wait(1.0)
            if self._closing:
                return False
            for part in self._parts.values():
                if part.seek:
                    consumer.seek(part.tp, part.next)
                    part.seek = False
        asked_s = monotonic()
        got = portions.poll(_POLL_MS, AHEAD_ROWS_MAX)
        if was_held and self._ids:
            consumer._net.run(consumer._cluster.refresh_metadata)
        if self._is_another(consumer):
            # What it holds is not what follows. The replica learns from its own look at the topics.
            with self._lock:
                self._lock.wait_for(lambda: self._closing, 1.0)
            return True
        now_s = monotonic()
        came_s = now_s
        if has_rested and now_s - asked_s < _ANSWER_S:  # they lay there, having come one after the other
            rows = sum(map(rows_of, chain.from_iterable(got.values())))
            came_s -= (now_s - self._polled_s) * rows / (rows + 1)
        self._polled_s = now_s
        with self._lock:
            for part in self._parts.values():
                if part.seek:
                    continue  # the group passed these records meanwhile
                for record in got.get(part.tp, ()):
                    if record.offset >= part.first:
                        first = max(part.first, first_offset_of(record))
                        part.records.append(_Held(now_s, came_s, record, first, record.offset + 1))
                        self._count(part.records[-1], 1)
                answered = consumer.highwater(part.tp) is not None
                part.took(consumer.position(part.tp), answered=answered, all_of_it=not self._is_much(got))
            self._lock.notify_all()
        self._came = bool(got)
        if got:
            self._arrived()
        return True

    def _rest(self) -> bool:
        """Waits until it may fetch. Returns whether it had to wait. The caller holds the lock."""
        has_rested = False
        while not self._closing and (rests_s := self._rests_until_s - monotonic()) > 0:
            has_rested = self._is_resting = True
            self._lock.wait(rests_s)
        self._is_resting = False
        return has_rested
