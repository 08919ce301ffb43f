"""Reads a topic's records into columns, some at a time, and ahead of the batches that need them.

How records are read does not depend on the batch that they belong to. So a thread of the task reads on, while
batches are processed and committed. What it has read ahead is cut where the next batches begin and end.
Another thread parses the texts of many records, while the next ones are fetched and decoded.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from pipeline_runtime.batch.decode import arrow_schema, decode
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.outside import Beside, Read, read_outside
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError, no_registry
from pipeline_runtime.kafka.arrow_batches import Rows
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.incoming import Records
from pipeline_runtime.kafka.partition_reader import PartitionReader
from pipeline_runtime.kafka.transactions import END_HEADER
from pipeline_runtime.model.dead_letters import FOR_HEADER
from pipeline_runtime.model.schema import StreamSchema

AHEAD_ROWS_MAX = 60_000
"""The most that a task holds read ahead, of all its partitions together, but for the portion that it read
last."""
AHEAD_BYTES_MAX = 32 * 1024 * 1024
WAIT_MS = 200
"""How long to wait for the records of a batch before the batch looks for them itself."""
PARSED_BESIDE_MIN = 2_000
"""The texts of so many records take longer to parse than it takes to change threads."""


@dataclass(frozen=True)
class Portion:
    """Consecutive records of one partition, with the rows that are in them."""

    records: Records  # those that can be rows
    read: Read  # `places` and `rejects` count in `records`
    ends: tuple[int, ...]  # the offsets of records that say that nothing follows
    unread: dict[int, str]  # by offset: why a record was not unpacked

    @staticmethod
    def of(records: Records, group_input: GroupInput, registries: Registries = no_registry) -> Portion:
        """Raises SchemaRegistryError."""
        ends = {} if group_input.external else _ends(records)
        unread = records.unread
        others = set() if group_input.external else _for_others(records, group_input.consumer)
        if ends or unread or others:
            left_out = ends.keys() | unread.keys() | others
            rest = [place for place in range(len(records)) if place not in left_out]
            told = {int(records.offsets[place]): why for place, why in unread.items()}
            records, unread = records.taken(rest), told
        return Portion(records, _read(records, group_input, registries), tuple(ends.values()), unread)

    @cached_property
    def bytes(self) -> int:
        """Returns how many bytes the values have."""
        return self.records.bytes

    def between(self, start: int, end: int) -> Portion:
        """Returns what is in the records with start <= offset < end."""
        first, last = np.searchsorted(self.records.offsets, (start, end)).tolist()
        return Portion(
            self.records.between(start, end),
            self.read.between(first, last),
            tuple(offset for offset in self.ends if start <= offset < end),
            {offset: why for offset, why in self.unread.items() if start <= offset < end},
        )


@dataclass(frozen=True)
class _Coming:
    """A portion whose texts may not be parsed yet. `get` waits for that, and raises what the parser has
    raised."""

    rows: int
    bytes: int
    get: Callable[[], Portion]

    @staticmethod
    def of(records: Records, group_input: GroupInput, registries: Registries) -> _Coming:
        if records.rows is None and len(records) >= PARSED_BESIDE_MIN:
            parsed = _parser.submit(Portion.of, records, group_input, registries)
            return _Coming(len(records), records.bytes, parsed.result)
        try:
            return _Coming.made(Portion.of(records, group_input, registries))
        except SchemaRegistryError as error:
            why = error

        def fail() -> Portion:
            """Raises when it is the turn of these records: those of a batch before them are fine."""
            raise why

        return _Coming(len(records), records.bytes, fail)

    @staticmethod
    def made(portion: Portion) -> _Coming:
        return _Coming(len(portion.records), portion.bytes, lambda: portion)


_parser = ThreadPoolExecutor(1, "parsing")


class PortionReader:
    """Reads one partition of an input. `held` may be called while another thread is in `read_one_ahead`.
    Apart from that it is for one thread at a time."""

    def __init__(
        self,
        kafka: KafkaSettings,
        group_input: GroupInput,
        partition: int,
        of: int = 1,
        registries: Registries = no_registry,
    ) -> None:
        """`of`: how many partitions its task reads."""
        assert group_input.topic is not None
        self._item = group_input
        self._registries = registries
        self._reader = PartitionReader(kafka, group_input.topic, partition, of)
        # All portions from `_begin`, where the last range ended, to `_end`. Each has the offset before which
        # it ends.
        self._ahead: deque[tuple[int, _Coming]] = deque()
        self._lock = threading.Lock()  # guards `_ahead`
        self._begin = self._end = -1
        self._topic_id = ""  # of the last range

    def held(self, start: int, end: int, topic_id: str = "") -> list[Portion] | None:
        """Returns what `read` would yield, if all of it was read ahead. All of that is of the topic of the
        last range."""
        if not self.is_next(start, topic_id) or not self.holds_all(end):
            return None
        self._begin = end
        return self._taken(start, end)

    def is_next(self, start: int, topic_id: str) -> bool:
        """Returns whether a range begins where the last one ended, in the same topic."""
        return start == self._begin and topic_id == self._topic_id

    def holds_all(self, end: int) -> bool:
        """Returns whether everything from the end of the last range to `end` was read ahead."""
        with self._lock:
            return len(self._ahead) > 0 and self._ahead[-1][0] >= end

    def read(self, start: int, end: int, topic_id: str = "") -> Iterator[Portion]:
        """Yields what is in the records with start <= offset < end. `topic_id` is that of the topic in which
        these offsets lie, or empty if nobody knows it. Raises as PartitionReader.read does, also at the end
        if another topic has the name by then: what was yielded may be that one's."""
        if start != self._begin or topic_id != self._topic_id:
            self._ahead.clear()
            self._end = start
        # A task may be ended in the middle of this.
        at, self._begin, self._topic_id = start, -1, topic_id
        yield from self._taken(start, end)
        at = max(start, min(self._end, end))
        if at < end:
            yield from _parsed_beside(self._reader.read(at, end, topic_id), self._item, self._registries)
            self._end = end
        if not self._reader.is_of(topic_id):
            self._reader.confirm(topic_id)
        self._begin = end

    def _taken(self, start: int, end: int) -> list[Portion]:
        """Takes what was read ahead of the records with start <= offset < end."""
        found, at = [], start
        while at < end:
            with self._lock:
                if not self._ahead:
                    break
                until, coming = self._ahead.popleft()
            portion = coming.get()
            if until > end:
                rest = _Coming.made(portion.between(end, until))
                with self._lock:
                    self._ahead.appendleft((until, rest))
                portion = portion.between(at, end)
            at = min(until, end)
            found.append(portion)
        return found

    def ahead(self) -> tuple[int, int]:
        """Returns how many rows and bytes are held read ahead."""
        with self._lock:
            held = [coming for _, coming in self._ahead]
        return sum(coming.rows for coming in held), sum(coming.bytes for coming in held)

    def read_one_ahead(self, wait_ms: int = 0) -> bool:
        """Reads one portion of what lies behind the last range. Returns whether anything was there, or came
        within `wait_ms`."""
        found = self._reader.ahead(self._end, self._topic_id, wait_ms)
        if found is None:
            return False
        records, end = found
        coming = _Coming.of(records, self._item, self._registries)
        with self._lock:
            self._ahead.append((end, coming))
            self._end = end
        return True

    def close(self) -> None:
        self._reader.close()


def _parsed_beside(
    found: Iterator[Records], group_input: GroupInput, registries: Registries
) -> Iterator[Portion]:
    """Yields the portion of each of `found`. While it is parsed, the one after it is read."""
    before: _Coming | None = None
    for records in found:
        coming = _Coming.of(records, group_input, registries)
        if before is not None:
            yield before.get()
        before = coming
    if before is not None:
        yield before.get()


def read_ahead(
    readers: Collection[PortionReader],
    held: Collection[PortionReader],
    is_enough: Callable[[], bool],
    waited_for: Callable[[], PortionReader | None] = lambda: None,
) -> None:
    """Reads ahead with each of `readers` in turn, until nothing is there, or `is_enough`, or all of `held`
    hold as much as a task may. It waits for what `waited_for` returns."""
    left = deque(readers)
    while left and not is_enough() and not _is_full(held):
        reader = left.popleft()
        if reader.read_one_ahead(WAIT_MS if reader is waited_for() else 0):
            left.append(reader)


def _is_full(held: Collection[PortionReader]) -> bool:
    ahead = [reader.ahead() for reader in held]
    rows, size = sum(rows for rows, _ in ahead), sum(size for _, size in ahead)
    return rows >= AHEAD_ROWS_MAX or size >= AHEAD_BYTES_MAX


def _ends(records: Records) -> dict[int, int]:
    """Returns, by place, the offsets of those that say that nothing follows."""
    return {
        place: int(records.offsets[place])
        for place, headers in records.headers.items()
        if any(name == END_HEADER[0] for name, _ in headers)
    }


def _for_others(records: Records, consumer: str) -> set[int]:
    """Returns the places of rows that are replayed to another element that reads the same stream."""
    return {
        place
        for place, headers in records.headers.items()
        for name, value in headers
        if name == FOR_HEADER and value != consumer.encode()
    }


def _read(records: Records, group_input: GroupInput, registries: Registries) -> Read:
    if group_input.reading is not None:
        beside = Beside(records.keys, records.headers)
        given = records.values, records.timestamps_ms, group_input.schema, group_input.reading
        try:
            return read_outside(*given, beside, registries)
        except SchemaRegistryError as error:
            waits = SchemaRegistryError(f"The records of the topic {group_input.topic} wait: {error}")
            if error.place is not None:
                waits.number, waits.place = error.number, int(records.offsets[error.place])
            raise waits from error
    if records.rows is not None:
        return _as_written(records, records.rows, group_input.schema)
    return _as_json(records, records.values, group_input.schema)


def _as_json(records: Records, texts: pa.BinaryArray, schema: StreamSchema) -> Read:
    decoded = decode(texts, schema)
    places = np.arange(len(records)) if decoded.kept is None else np.array(decoded.kept, np.int64)
    return Read(decoded.columns, places, records.timestamps_ms[places] * 1000, decoded.rejects)


def _as_written(records: Records, rows: pa.Table, schema: StreamSchema) -> Read:
    """Returns rows that were written as columns."""
    wanted = arrow_schema(schema)
    if all(field in rows.schema for field in wanted):
        return Read(rows.select(schema.names), np.arange(len(records)), records.timestamps_ms * 1000, ())
    # Another definition has written them. What its rows mean for this one, their JSON says.
    texts = Rows(records.keys, records.timestamps_ms, rows).as_json().values
    return _as_json(records, texts, schema)
