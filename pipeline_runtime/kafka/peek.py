"""Reads the newest records of a topic, or those of a range of time, for the dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from time import monotonic
from typing import Any

from kafka import TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from pipeline_runtime.kafka.arrow_batches import ROWS_MAX
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer, within

_TIMEOUT_S = 3.0
_POLL_MS = 200
_ROWS_OF_A_STEP = 100
"""How many rows are read at each place where a time is looked for."""
_BACK_MAX = 64
"""How many times further back than the wanted records a look goes, past markers and aborted transactions."""


@dataclass(frozen=True)
class PeekedRecord:
    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    value: str
    is_text: bool = True  # whether the value is UTF-8: else other characters stand for what is not


@dataclass(frozen=True)
class Newest:
    """The newest records of a topic, oldest first."""

    records: list[PeekedRecord]
    late: bool = False  # Kafka did not give all of them in time, so there may be newer ones
    cut: bool = False  # older ones were left out, since all together are too large
    refused: bool = False  # the user may not read them


@dataclass(frozen=True)
class RangeRead:
    """The records of a range of time, in the order of their times."""

    records: list[PeekedRecord]
    ends: dict[int, int]  # by partition: where the next range goes on
    left_out: int  # older records of the range that were not read, as far as offsets tell


class SharedConsumer:
    """A consumer for several looks, one after another. It is opened by the first of them; if that fails, the
    others fail at once."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._opened: Any = None

    def __enter__(self) -> SharedConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None and not isinstance(self._opened, Exception):
            self._opened.close()

    @property
    def consumer(self) -> Any:
        if self._opened is None:
            try:
                self._opened = _opened(self._kafka)
            except Exception as error:
                self._opened = error
        if isinstance(self._opened, Exception):
            raise self._opened
        return self._opened


Kafka = KafkaSettings | SharedConsumer


@contextmanager
def _consumer(kafka: Kafka) -> Iterator[Any]:
    if isinstance(kafka, SharedConsumer):
        yield kafka.consumer
        return
    consumer = _opened(kafka)
    try:
        yield consumer
    finally:
        consumer.close()


def _opened(kafka: KafkaSettings) -> Any:
    return open_consumer(kafka, fetch_max_wait_ms=100)


def peek(kafka: KafkaSettings, topic: str, limit: int, timeout_s: float = _TIMEOUT_S) -> list[PeekedRecord]:
    """Returns the newest `limit` committed records, oldest first, or [] when the topic has none or is
    unknown."""
    return peek_each(kafka, {topic: limit}, timeout_s)[topic].records


def peek_each(
    kafka: Kafka,
    limits: Mapping[str, int],
    timeout_s: float = _TIMEOUT_S,
    bytes_max: float = inf,
    *,
    passes_refused: bool = False,
) -> dict[str, Newest]:
    """Returns the same of several topics, by topic: as many records as its limit says. One consumer reads all
    of them beside each other, in at most `timeout_s`. `bytes_max` bounds the values kept of each topic.

    `passes_refused`: a topic that the user may not read has no records; else it raises
    TopicAuthorizationFailedError.
    """
    with _consumer(kafka) as consumer:
        found = _newest_of(
            consumer, limits, monotonic() + timeout_s, bytes_max, passes_refused=passes_refused
        )
    return found


def _newest_of(
    consumer: Any, limits: Mapping[str, int], deadline: float, bytes_max: float, *, passes_refused: bool
) -> dict[str, Newest]:
    there = consumer.topics()
    tps = [
        TopicPartition(topic, partition)
        for topic in limits
        if topic in there
        for partition in sorted(consumer.partitions_for_topic(topic) or ())
    ]
    found = dict.fromkeys(limits, Newest([]))
    if not tps:
        return found
    ends, first = consumer.end_offsets(tps), consumer.beginning_offsets(tps)
    back = 2  # times the limit: one commit marker for each transaction is usual
    while tps:
        starts = {tp: max(first[tp], ends[tp] - back * limits[tp.topic]) for tp in tps}
        kept = {tp.topic: _Kept(limits[tp.topic], bytes_max) for tp in tps}
        late, refused = _read_into(consumer, kept, starts, ends, deadline, passes_refused=passes_refused)
        found |= {
            topic: each.newest(late=topic in late, refused=topic in refused) for topic, each in kept.items()
        }
        more = {tp.topic for tp in tps if starts[tp] > first[tp]} if back <= _BACK_MAX else set()
        short = {topic for topic in more - late - refused if not kept[topic].is_full}
        tps = [tp for tp in tps if tp.topic in short]
        back *= 4
    return found


def _read_into(
    consumer: Any,
    kept: Mapping[str, _Kept],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    deadline: float,
    *,
    passes_refused: bool,
) -> tuple[set[str], set[str]]:
    """Reads the records between these offsets. Returns the topics whose ends were not reached in time, and
    those that the user may not read."""
    refused: set[str] = set()
    waiting = {tp for tp, start in starts.items() if start < ends[tp]}
    consumer.assign(list(waiting))
    for tp in waiting:
        consumer.seek(tp, starts[tp])
    while waiting and monotonic() < deadline:
        try:
            polled = consumer.poll(_POLL_MS)
        except TopicAuthorizationFailedError as error:
            if not passes_refused:
                raise
            refused |= set(error.args[0])
            waiting = {tp for tp in waiting if tp.topic not in refused}
            consumer.pause(*(tp for tp in consumer.assignment() if tp.topic in refused))
            continue
        for tp, batch in polled.items():
            for record in batch:
                if record.offset < ends[tp] and not record.headers:
                    kept[tp.topic].add(record)
        waiting = {tp for tp in waiting if consumer.position(tp) < ends[tp]}
    return {tp.topic for tp in waiting}, refused


class _Kept:
    """The newest records of a topic among those that were read: by time, as many as are wanted, with no more
    bytes than are allowed."""

    def __init__(self, limit: int, bytes_max: float) -> None:
        self._limit = limit
        self._bytes_max = bytes_max
        self._bytes = 0
        self._heap: list[tuple[int, int, int, Any]] = []
        self._cut = False

    def add(self, record: Any) -> None:
        heappush(self._heap, (record.timestamp, record.partition, record.offset, record))
        self._bytes += _bytes_of(record)
        if len(self._heap) > self._limit:
            self._drop()
        while self._bytes > self._bytes_max:
            self._drop()
            self._cut = True

    def _drop(self) -> None:
        self._bytes -= _bytes_of(heappop(self._heap)[-1])

    @property
    def is_full(self) -> bool:
        return self._cut or len(self._heap) >= self._limit

    def newest(self, *, late: bool, refused: bool) -> Newest:
        return Newest([peeked(record) for *_, record in sorted(self._heap)], late, self._cut, refused)


def _bytes_of(record: Any) -> int:
    return len(record.value or b"") + len(record.key or b"")


def read_new(kafka: Kafka, topic: str, after: Mapping[int, int], rows_max: int) -> RangeRead:
    """Returns what was committed behind these offsets, by partition: of more than `rows_max` the newest."""
    with OpenTopic(kafka, topic) as found:
        starts = {tp: min(end, after.get(tp.partition, 0)) for tp, end in found.ends.items()}
        return found.read_newest(starts, found.ends, rows_max)


def read_window(kafka: Kafka, topic: str, window_ms: int, rows_max: int) -> RangeRead:
    """Returns the records whose times are in the newest `window_ms` of the topic's own time: of more than
    `rows_max` the newest."""
    with OpenTopic(kafka, topic) as found:
        newest = found.read(
            {tp: max(found.first[tp], end - 100) for tp, end in found.ends.items()}, found.ends
        )
        if not newest:
            return found.read_newest(found.ends, found.ends, rows_max)
        from_ms = newest[-1].timestamp_ms - window_ms
        read = found.read_newest(found.offsets_at(from_ms), found.ends, rows_max)
        inside = [record for record in read.records if record.timestamp_ms >= from_ms]
        return RangeRead(inside, read.ends, read.left_out)


def read_span(kafka: Kafka, topic: str, from_ms: int, to_ms: int, rows_max: int) -> RangeRead:
    """Returns the records whose times are in a span: of more than `rows_max` the newest."""
    with OpenTopic(kafka, topic) as found:
        read = found.read_newest(found.offsets_at(from_ms), found.offsets_behind(to_ms), rows_max + ROWS_MAX)
        inside = [record for record in read.records if from_ms <= record.timestamp_ms <= to_ms]
        return RangeRead(inside, read.ends, read.left_out)


def newest_offsets(
    kafka: KafkaSettings, topic: str, most: int, timeout_s: float = _TIMEOUT_S
) -> dict[int, tuple[int, int]]:
    """Returns where the newest records of a topic begin and end, by partition: about `most` in all. Returns
    {} when the topic is unknown. Raises KafkaError when the broker does not answer in time."""

    def ask() -> dict[int, tuple[int, int]]:
        with OpenTopic(kafka, topic, timeout_s) as found:
            each = max(1, most // max(1, len(found.ends)))
            return {tp.partition: (max(found.first[tp], end - each), end) for tp, end in found.ends.items()}

    return within(timeout_s, ask)


class OpenTopic:
    """A consumer of all partitions of a topic, which may be unknown and then has none."""

    def __init__(self, kafka: Kafka, topic: str, timeout_s: float = _TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._topic = topic
        self._open = ExitStack()
        self._consumer: Any = self._open.enter_context(_consumer(kafka))
        self._tps: list[TopicPartition] = []
        self.first: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}

    def __enter__(self) -> OpenTopic:
        try:
            known = sorted(self._consumer.partitions_for_topic(self._topic) or ())
            self._tps = [TopicPartition(self._topic, partition) for partition in known]
            if self._tps:
                self.ends = self._consumer.end_offsets(self._tps)
                self.first = self._consumer.beginning_offsets(self._tps)
                self._consumer.assign(self._tps)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def offsets_at(self, at_ms: int) -> dict[TopicPartition, int]:
        """Returns the first offsets whose rows have this time or a later one, as far as rows are in the order
        of their times."""
        if not self._tps:
            return {}
        found = self._consumer.offsets_for_times(dict.fromkeys(self._tps, max(0, at_ms)))
        return {
            tp: self.ends[tp] if at is None else self._first_row_at(tp, at.offset, at_ms)
            for tp, at in found.items()
        }

    def _first_row_at(self, tp: TopicPartition, begin: int, at_ms: int) -> int:
        """Returns the first offset from `begin` on whose row has this time or a later one, as far as rows are
        in the order of their times.

        The broker also finds the markers of transactions, which have the time of their writing. That is later
        than the times of all rows if a recording is replayed with its own times.
        """
        low, high = begin, self.ends[tp]
        middle = low
        while low < high:
            rows = self._rows_from(tp, middle)
            if not rows or rows[0].timestamp >= at_ms:
                high = middle
            elif newer := [row.offset for row in rows if row.timestamp >= at_ms]:
                return int(newer[0])
            else:
                low = rows[-1].offset + 1
            middle = (low + high) // 2
        return low

    def _rows_from(self, tp: TopicPartition, offset: int) -> list[Any]:
        """Returns some rows from this offset on; none if only markers follow. Raises TimeoutError."""
        rows: list[Any] = []
        starts = {**self.ends, tp: offset}
        for record in self.each_record(starts, self.ends):
            if not record.headers:
                rows.append(record)
            if len(rows) == _ROWS_OF_A_STEP:
                return rows
        self.require(self.ends)
        return rows

    def offsets_behind(self, at_ms: int) -> dict[TopicPartition, int]:
        """Returns offsets behind all records that have this time or an earlier one, as far as records are in
        the order of their times."""
        newer = self.offsets_at(at_ms + 1)
        return {tp: min(self.ends[tp], offset + ROWS_MAX) for tp, offset in newer.items()}

    def read_newest(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], rows_max: int
    ) -> RangeRead:
        """Reads the newest of these offsets, about `rows_max` in all."""
        each = rows_max // max(1, len(self._tps))
        begins = {tp: max(starts[tp], self.first[tp], ends[tp] - each) for tp in self._tps}
        left_out = sum(max(0, begins[tp] - max(starts[tp], self.first[tp])) for tp in self._tps)
        records = self.read(begins, ends)
        # A slow broker may not have given all of them in time: the next range begins with the others.
        reached = {tp.partition: min(ends[tp], self._consumer.position(tp)) for tp in self._tps}
        return RangeRead(records, reached, left_out)

    def read(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[PeekedRecord]:
        """Returns the committed records between these offsets, by time."""
        records = [*self.each(starts, ends)]
        records.sort(key=lambda record: (record.timestamp_ms, record.partition, record.offset))
        return records

    def each(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> Iterator[PeekedRecord]:
        """Yields the committed records between these offsets that are rows of all readers, in the order of
        each partition, until the time is over. `behind` says whether some were left."""
        yield from (peeked(record) for record in self.each_record(starts, ends) if not record.headers)

    def each_record(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> Iterator[Any]:
        """Yields all of them as kafka-python has them, with their headers."""
        for tp in self._tps:
            self._consumer.seek(tp, starts[tp])
        deadline = monotonic() + self._timeout_s
        while monotonic() < deadline and self.behind(ends):
            for tp, batch in self._consumer.poll(_POLL_MS).items():
                yield from (record for record in batch if record.offset < ends[tp])

    def behind(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Returns whether there are records before these offsets that were not read yet."""
        return any(self._consumer.position(tp) < ends[tp] for tp in self._tps)

    def require(self, ends: Mapping[TopicPartition, int]) -> None:
        """Raises TimeoutError if records before these offsets were not read in time."""
        if self.behind(ends):
            raise TimeoutError(f"Kafka did not give all records of {self._topic} in {self._timeout_s:.0f} s.")


def peeked(record: Any) -> PeekedRecord:
    value: bytes = record.value or b""
    try:
        text, is_text = value.decode(), True
    except UnicodeDecodeError:
        text, is_text = value.decode(errors="replace"), False
    key = None if record.key is None else key_text(record.key)
    return PeekedRecord(record.partition, record.offset, record.timestamp, key, text, is_text)


def key_text(key: bytes) -> str:
    """Returns a record's key as text. Bytes that are not UTF-8 stand there as \\xNN: two keys must not become
    one."""
    return key.decode(errors="backslashreplace")
