"""Reads dead letters with what has become of them, and settles some of them, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.kafka.peek import OpenTopic, PeekedRecord, peeked
from pipeline_runtime.kafka.transactions import Outgoing, OutgoingRecord, Transactions
from pipeline_runtime.model.dead_letters import FOR_HEADER, MARK_HEADER, ORDER_HEADER, Chosen, Fates, Mark

BACK_MAX = 64
"""How many times further back than the wanted letters a look goes, past those that were settled."""
_LOOK_S = 3.0
_READ_S = 30.0
_COUNT_S = 20.0
_MARKS_S = 300.0
"""Marks are read up to the end of the topic, which may have 1 GiB."""
_NEAR = 500
"""Records that lie so near to each other are read in one go."""


def open_letters(
    kafka: KafkaSettings, topic: str, most: int, timeout_s: float = _LOOK_S
) -> list[PeekedRecord]:
    """Returns the newest `most` letters that are open, oldest first. Raises KafkaError."""
    with OpenTopic(kafka, topic, timeout_s) as found:
        back = 2 * most
        while True:
            starts = {tp: max(found.first[tp], end - back) for tp, end in found.ends.items()}
            letters, fates = _read(found.each_record(starts, found.ends))
            left = [each for each in letters if fates.is_open(each.offset)]
            whole = all(starts[tp] == found.first[tp] for tp in starts)
            if len(left) >= most or whole or back > BACK_MAX * most:
                return left[-most:]
            back *= 4


def letters_behind(kafka: KafkaSettings, topic: str, first: int, most: int) -> list[PeekedRecord]:
    """Returns all letters from the offset `first` on, of more than about `most` the newest ones."""
    with OpenTopic(kafka, topic) as found:
        starts = {tp: max(found.first[tp], min(first, end), end - most) for tp, end in found.ends.items()}
        return _read(found.each_record(starts, found.ends))[0]


def each_open_letter(kafka: KafkaSettings, topic: str, most: int, timeout_s: float) -> Iterator[PeekedRecord]:
    """Yields the open letters of the newest `most` offsets, oldest first. Holds one poll's letters at a time.
    Raises TimeoutError if it takes longer than `timeout_s`."""
    with OpenTopic(kafka, topic, timeout_s) as found:
        starts = {tp: max(found.first[tp], end - most) for tp, end in found.ends.items()}
        # The marks come first: they lie behind the letters that they are about.
        fates = Fates(_marks(found.each_record(starts, found.ends)))
        found.require(found.ends)
        for record in found.each_record(starts, found.ends):
            if not record.headers and fates.is_open(record.offset):
                yield peeked(record)
        found.require(found.ends)


@dataclass(frozen=True)
class CountedLetters:
    """How many open letters there are from the offset `first` to before `until`."""

    letters: int
    first: int
    until: int
    more: bool  # whether the topic has older letters, which were not looked at


def count_open(
    kafka: KafkaSettings, topic: str, chosen: Chosen, most: int, timeout_s: float = _COUNT_S
) -> CountedLetters:
    """Counts the open ones of some letters, in the newest `most` offsets of their span at most. Holds one
    poll's letters at a time. Raises TimeoutError if it takes longer than `timeout_s`, KafkaError."""
    with OpenTopic(kafka, topic, timeout_s) as found:
        until = min([chosen.until, *found.ends.values()])
        oldest = min([until, *(max(chosen.first, first) for first in found.first.values())])
        first = max(oldest, until - most)
        fates, offsets = Fates(), []
        for record in found.each_record(dict.fromkeys(found.ends, first), found.ends):
            if record.headers:
                for mark in _marks([record]):
                    fates.add(mark)
            elif record.offset < until and chosen.has(record.offset, peeked(record).value):
                offsets.append(record.offset)
        found.require(found.ends)
        return CountedLetters(sum(map(fates.is_open, offsets)), first, until, oldest < first)


class Settling:
    """The only one that does something about an element's letters, until another begins (`settling`)."""

    def __init__(self, writer: Transactions, topic: OpenTopic, at: TopicPartition, fates: Fates) -> None:
        self._writer = writer
        self._topic = topic
        self._at = at
        self.fates = fates

    @property
    def end(self) -> int:
        """Returns the offset before which all letters lie that there were when it began."""
        return self._topic.ends[self._at]

    def letters(self, first: int, until: int) -> list[PeekedRecord]:
        """Returns the letters from `first` to before `until`. Raises TimeoutError."""
        end = min(until, self.end)
        start = max(first, self._topic.first[self._at])
        if start >= end:
            return []
        read, _ = _read(self._topic.each_record({self._at: start}, {self._at: end}))
        self._topic.require({self._at: end})
        return read

    def commit(self, mark: Mark, topic: str, rows: Sequence[Outgoing]) -> None:
        """Writes rows that come back, and the mark of their letters, in one transaction. Raises Fenced when
        another has begun, Doubtful when Kafka does not answer, RecordsRefused."""
        self._writer.commit([*rows, mark_record(topic, mark)])
        self.fates.add(mark)


@contextmanager
def settling(kafka: KafkaSettings, transactional_id: str, topic: str, first: int) -> Iterator[Settling]:
    """Lets the caller do something about letters from the offset `first` on, so that each is settled once,
    whoever asks how often and whatever ends in between.

    1. Initialise the id. Whoever had it can commit nothing from now on.
    2. Read what had become of letters until then.
    3. The caller reads letters, and decides by their fates.
    4. Write what came of that in transactions. A mark is part of each.

    Raises Fenced when another does the same at this time, Doubtful when Kafka does not answer, TimeoutError.
    It may always be tried again.
    """
    writer = Transactions(kafka, transactional_id)
    with closing(writer):
        writer.initialise()
        fates = read_fates(kafka, topic, first)
        with OpenTopic(kafka, topic, _READ_S) as found:
            yield Settling(writer, found, TopicPartition(topic, 0), fates)


def read_fates(kafka: KafkaSettings, topic: str, first: int) -> Fates:
    """Returns what has become of letters, by all marks from the offset `first` on that the topic has now. A
    mark may lie behind letters of a batch whose transaction is open: it is waited for. Raises TimeoutError.
    """
    with OpenTopic(kafka, topic, _MARKS_S) as found:
        ends = _all_ends(kafka, found.ends)
        starts = {tp: max(found.first[tp], min(first, end)) for tp, end in ends.items()}
        fates = Fates(_marks(found.each_record(starts, ends)))
        found.require(ends)
        return fates


def _all_ends(kafka: KafkaSettings, of: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Returns where partitions end, with what is in open transactions."""
    uncommitted = open_consumer(kafka, isolation_level="read_uncommitted")
    with closing(uncommitted):
        return dict(uncommitted.end_offsets([*of]))


def mark_record(topic: str, mark: Mark) -> OutgoingRecord:
    """Returns the mark as a record of the letters' topic."""
    return OutgoingRecord(topic, mark.encode(), partition=0, headers=((MARK_HEADER, b"1"),))


def replayed_record(
    topic: str, value: bytes, key: bytes | None, time_ms: int, consumer: str | None, order: str
) -> OutgoingRecord:
    """Returns a row that comes back. Without a `consumer` it is a row of the stream as any other."""
    if consumer is None:
        return OutgoingRecord(topic, value, key, time_ms)
    headers = ((FOR_HEADER, consumer.encode()), (ORDER_HEADER, order.encode()))
    return OutgoingRecord(topic, value, key, time_ms, headers=headers)


def ends_of(kafka: KafkaSettings, topic: str) -> dict[int, int]:
    """Returns where each partition of a topic ends."""
    with OpenTopic(kafka, topic) as found:
        return {tp.partition: end for tp, end in found.ends.items()}


def replayed_at(
    kafka: KafkaSettings, topic: str, order: str, behind: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Returns the partition and the offset of each row that an order has brought back to one element. They
    lie `behind` these offsets, by partition. A broker may still be writing that they are committed: that is
    waited for. Raises TimeoutError."""
    with OpenTopic(kafka, topic, _READ_S) as found:
        ends = _all_ends(kafka, found.ends)
        starts = {tp: min(end, max(found.first[tp], behind.get(tp.partition, 0))) for tp, end in ends.items()}
        wanted = (ORDER_HEADER, order.encode())
        places = [
            (record.partition, record.offset)
            for record in found.each_record(starts, ends)
            if wanted in record.headers
        ]
        found.require(ends)
        return places


def records_at(
    kafka: KafkaSettings, topic: str, places: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], PeekedRecord]:
    """Returns the records that the topic still has at these places: partition and offset."""
    wanted = set(places)
    found: dict[tuple[int, int], PeekedRecord] = {}
    with OpenTopic(kafka, topic, _READ_S) as open_topic:
        for tp in open_topic.ends:
            mine = sorted(offset for partition, offset in wanted if partition == tp.partition)
            for first, last in _runs(mine):
                # What no longer or not yet exists is left out.
                begin, end = max(first, open_topic.first[tp]), min(last + 1, open_topic.ends[tp])
                if begin >= end:
                    continue
                starts, ends = {**open_topic.ends, tp: begin}, {**open_topic.ends, tp: end}
                for record in open_topic.each_record(starts, ends):
                    if (record.partition, record.offset) in wanted:
                        found[record.partition, record.offset] = peeked(record)
    return found


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    """Returns rising offsets as ranges that are read in one go."""
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and offset - runs[-1][1] <= _NEAR:
            runs[-1] = (runs[-1][0], offset)
        else:
            runs.append((offset, offset))
    return runs


def _read(records: Iterable[Any]) -> tuple[list[PeekedRecord], Fates]:
    letters, fates = [], Fates()
    for record in records:
        if not record.headers:
            letters.append(peeked(record))
        for mark in _marks([record]):
            fates.add(mark)
    return letters, fates


def _marks(records: Iterable[Any]) -> Iterator[Mark]:
    for record in records:
        if any(name == MARK_HEADER for name, _ in record.headers):
            yield Mark.decode(record.value)
