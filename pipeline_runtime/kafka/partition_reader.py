"""Reads a range of offsets of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, OffsetOutOfRangeError

from pipeline_runtime.kafka.arrow_batches import is_own
from pipeline_runtime.kafka.clients import KafkaSettings, close_spent, open_consumer
from pipeline_runtime.kafka.incoming import Polled, Records
from pipeline_runtime.kafka.whole_batches import read_whole_batches

_POLL_MS = 200
_RETRY_S = 0.2
_FOR_EVER = 2**63 - 1
_FETCH_BYTES_MIN, _FETCH_BYTES_MAX = 256 * 1024, 8 * 1024 * 1024
_FETCH_BYTES_OF_ALL = 64 * 1024 * 1024


def fetch_bytes(partitions: int) -> int:
    """Returns how much one fetch may bring, for a task that reads so many partitions. Each of them may hold
    as much while the task is busy with others. A single batch may be larger."""
    return max(_FETCH_BYTES_MIN, min(_FETCH_BYTES_MAX, _FETCH_BYTES_OF_ALL // max(1, partitions)))


class RangeGone(RuntimeError):
    """The records that a batch needs are no longer in the topic."""


class RangeUnreadable(RuntimeError):
    """The records that a batch needs are there, but they cannot be decoded."""


class PartitionReader:
    """Keeps its consumer between ranges, and what it has read beyond the last range."""

    def __init__(self, kafka: KafkaSettings, topic: str, partition: int, of: int = 1) -> None:
        """`of`: how many partitions its task reads."""
        self._kafka = kafka
        self._fetch_bytes = fetch_bytes(of)
        self._tp = TopicPartition(topic, partition)
        self._consumer: KafkaConsumer | None = None
        self._polled = Polled(may_hold_rows=is_own(topic))
        self._next = -1  # a range that begins here goes on with what was polled
        self._known_id = ""  # of the topic of which all is that was polled, as far as is known

    def read(self, start: int, end: int, topic_id: str = "") -> Iterator[Records]:
        """Yields the committed records with start <= offset < end, some at a time.

        `topic_id` is that of the topic in which these offsets lie, or empty if nobody knows it. Whether what
        was yielded is of that topic, `is_of` and `confirm` say.

        Raises RangeGone and RangeUnreadable. It waits for a broker that is away: the batch was granted, so it
        has to be read.
        """
        consumer, polled = self._at(start, topic_id), self._polled
        # A task may be ended in the middle of this. The consumer then stands somewhere else.
        self._next = -1
        try:
            while self._reached(consumer) < end:
                if polled.next_offset is None:
                    self._poll(consumer, _POLL_MS)
                    if polled.next_offset is None:
                        self.confirm(topic_id)
                records = polled.take(start, end)
                if len(records):
                    yield records
        except OffsetOutOfRangeError as error:
            self.close()
            raise RangeGone(f"{self._name} no longer has the offsets {start} to {end}") from error
        except KafkaError as error:
            self.close()  # it would try for ever to decode what it cannot decode
            raise RangeUnreadable(f"{self._name}, between the offsets {start} and {end}: {error}") from error
        self._next = end

    def ahead(self, start: int, topic_id: str = "", wait_ms: int = 0) -> tuple[Records, int] | None:
        """Returns the next records from `start` on, and the offset before which there are no others. Returns
        None if none are here and none come within `wait_ms`, if the last range did not end at `start`, or if
        another topic has the name by now."""
        consumer, polled = self._consumer, self._polled
        if consumer is None or self._next != start:
            return None
        self._next = -1
        try:
            if polled.next_offset is None:
                self._poll(consumer, wait_ms)
            if polled.next_offset is None:
                self._next = start  # the consumer may have passed what only ends a transaction
                return None
            if not self.is_of(topic_id):
                self._ask(consumer, topic_id)
            records = polled.take(start, _FOR_EVER)
            self._next = self._reached(consumer)
        except (KafkaError, RangeGone):
            self.close()  # whoever needs these records will be told why they cannot be read
            return None
        return records, self._next

    def _poll(self, consumer: KafkaConsumer, timeout_ms: int) -> None:
        self._polled.poll(consumer, timeout_ms)
        if self._polled.next_offset is not None:
            self._known_id = ""

    def is_of(self, topic_id: str) -> bool:
        """Returns whether all that was read is known to be of that topic. Nobody has to ask then."""
        return not topic_id or topic_id == self._known_id

    def confirm(self, topic_id: str) -> None:
        """Asks which topic has the name now, and raises RangeGone if it is another one. An id never comes
        back: if it is the same one, all that was read before is of that topic."""
        while topic_id:
            try:
                if self._consumer is None:
                    self._consumer, self._next = self._open(), -1
                    self._consumer.beginning_offsets([self._tp])
                self._ask(self._consumer, topic_id)
            except KafkaError:
                sleep(_RETRY_S)
                continue
            return

    def _ask(self, consumer: KafkaConsumer, topic_id: str) -> None:
        consumer._net.run(consumer._cluster.refresh_metadata)
        if self._is_another(consumer, topic_id):
            self.close()
            raise RangeGone(f"{self._tp.topic} was deleted and created again: its records are gone")
        self._known_id = topic_id

    def _reached(self, consumer: KafkaConsumer) -> int:
        left = self._polled.next_offset
        return int(consumer.position(self._tp)) if left is None else left

    def close(self) -> None:
        if self._consumer is not None:
            close_spent(self._consumer)
            self._consumer = None

    @property
    def _name(self) -> str:
        return f"{self._tp.topic}-{self._tp.partition}"

    def _at(self, start: int, topic_id: str) -> KafkaConsumer:
        """Returns the consumer, standing at `start`."""
        while True:
            try:
                if self._consumer is not None and self._is_another(self._consumer, topic_id):
                    self.close()  # the range lies in a newer topic than the one that was read so far
                if self._consumer is None:
                    self._consumer, self._next = self._open(), -1
                if self._next != start:
                    self._polled.clear()
                    self._seek(self._consumer, start)
                return self._consumer
            except KafkaError:
                self.close()
                sleep(_RETRY_S)

    def _open(self) -> KafkaConsumer:
        consumer = open_consumer(
            self._kafka,
            fetch_max_wait_ms=20,
            check_crcs=True,  # costs nothing for whole batches
            max_poll_records=10_000,  # counts batches
            max_partition_fetch_bytes=self._fetch_bytes,
            auto_offset_reset="none",
        )
        read_whole_batches(consumer)
        consumer.assign([self._tp])
        return consumer

    def _seek(self, consumer: KafkaConsumer, start: int) -> None:
        first = consumer.beginning_offsets([self._tp])[self._tp]
        if first > start:
            raise RangeGone(
                f"{self._name} begins at offset {first}, but {start} is needed:"
                " its retention is shorter than what this group lags behind"
            )
        consumer.seek(self._tp, start)

    def _is_another(self, consumer: KafkaConsumer, topic_id: str) -> bool:
        known = consumer._cluster.topic_id(self._tp.topic)
        return bool(topic_id and known) and str(known) != topic_id
