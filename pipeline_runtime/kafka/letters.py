"""Reads dead letters with what has become of them, and settles some of them, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.peek import OpenTopic, PeekedRecord, peeked
from pipeline_runtime.kafka.transactions import Outgoing, OutgoingRecord, Transactions
from pipeline_runtime.model.dead_letters import FOR_HEADER, MARK_HEADER, ORDER_HEADER, Mark, settled

BACK_MAX = 64
"""How many times further back than the wanted letters a look goes, past those that were settled."""
_LOOK_S = 3.0
_READ_S = 30.0
_NEAR = 500
"""Records that lie so near to each other are read in one go."""


@dataclass(frozen=True)
class LettersRead:
    """What lies in a topic of dead letters, oldest first."""

    letters: list[PeekedRecord]
    marks: list[Mark]

    @property
    def open(self) -> list[PeekedRecord]:
        """Returns the letters that nobody has dropped or replayed."""
        done = settled(self.marks)
        return [each for each in self.letters if each.offset not in done]


def open_letters(
    kafka: KafkaSettings, topic: str, most: int, timeout_s: float = _LOOK_S
) -> list[PeekedRecord]:
    """Returns the newest `most` letters that are open, oldest first. Raises KafkaError."""
    with OpenTopic(kafka, topic, timeout_s) as found:
        back = 2 * most
        while True:
            starts = {tp: max(found.first[tp], end - back) for tp, end in found.ends.items()}
            read = _read(found.each_record(starts, found.ends))
            whole = all(starts[tp] == found.first[tp] for tp in starts)
            if len(read.open) >= most or whole or back > BACK_MAX * most:
                return read.open[-most:]
            back *= 4


def letters_behind(kafka: KafkaSettings, topic: str, first: int, most: int) -> list[PeekedRecord]:
    """Returns all letters from the offset `first` on, of more than about `most` the newest ones."""
    with OpenTopic(kafka, topic) as found:
        starts = {tp: max(found.first[tp], min(first, end), end - most) for tp, end in found.ends.items()}
        return _read(found.each_record(starts, found.ends)).letters


def each_open_letter(kafka: KafkaSettings, topic: str, most: int, timeout_s: float) -> Iterator[PeekedRecord]:
    """Yields the open letters of the newest `most` offsets, oldest first. Holds one poll's letters at a time.
    Raises TimeoutError if it takes longer than `timeout_s`."""
    with OpenTopic(kafka, topic, timeout_s) as found:
        starts = {tp: max(found.first[tp], end - most) for tp, end in found.ends.items()}
        # The marks come first: they lie behind the letters that they are about.
        done = settled(_marks(found.each_record(starts, found.ends)))
        found.require(found.ends)
        for record in found.each_record(starts, found.ends):
            if not record.headers and record.offset not in done:
                yield peeked(record)
        found.require(found.ends)


def settle(
    kafka: KafkaSettings,
    transactional_id: str,
    topic: str,
    first: int,
    decide: Callable[[LettersRead], Iterable[Outgoing]],
) -> None:
    """Does something about letters from the offset `first` on, so that each is settled once, whoever asks how
    often and whatever ends in between.

    1. Initialise the id. Whoever had it can commit nothing from now on.
    2. Read all letters and marks that were committed until then.
    3. Let `decide` say what is to be written, by these.
    4. Write it in one transaction. The mark is part of it.

    Raises Fenced when another does the same at this time, Doubtful when Kafka does not answer, TimeoutError,
    RecordsRefused. It may always be tried again.
    """
    writer = Transactions(kafka, transactional_id)
    with closing(writer):
        writer.initialise()
        outgoing = [*decide(read_all(kafka, topic, first))]
        if outgoing:
            writer.commit(outgoing)


def read_all(kafka: KafkaSettings, topic: str, first: int) -> LettersRead:
    """Returns all letters and marks that the topic has now, from the offset `first` on. A mark may lie behind
    letters of a batch whose transaction is open: it is waited for. Raises TimeoutError."""
    at = TopicPartition(topic, 0)
    uncommitted = open_consumer(kafka, isolation_level="read_uncommitted")
    with closing(uncommitted):
        end = uncommitted.end_offsets([at])[at]
    with OpenTopic(kafka, topic, _READ_S) as found:
        starts, ends = {at: max(found.first[at], min(first, end))}, {at: end}
        read = _read(found.each_record(starts, ends))
        found.require(ends)
        return read


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
    lie `behind` these offsets, by partition."""
    with OpenTopic(kafka, topic, _READ_S) as found:
        starts = {tp: max(found.first[tp], behind.get(tp.partition, 0)) for tp in found.ends}
        wanted = (ORDER_HEADER, order.encode())
        return [
            (record.partition, record.offset)
            for record in found.each_record(starts, found.ends)
            if wanted in record.headers
        ]


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


def _read(records: Iterable[Any]) -> LettersRead:
    read = LettersRead([], [])
    for record in records:
        if not record.headers:
            read.letters.append(peeked(record))
        else:
            read.marks.extend(_marks([record]))
    return read


def _marks(records: Iterable[Any]) -> Iterator[Mark]:
    for record in records:
        if any(name == MARK_HEADER for name, _ in record.headers):
            yield Mark.decode(record.value)
