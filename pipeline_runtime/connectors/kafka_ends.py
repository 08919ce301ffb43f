"""The Kafka ends of connectors: the topic that an ingester fills, and the stream that a deliverer empties."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, time
from typing import Any

from pipeline_runtime.connectors.delivery import Gap, Letter
from pipeline_runtime.connectors.intake import SendFailed
from pipeline_runtime.connectors.once import PositionTopicGone, newest
from pipeline_runtime.connectors.pause import LastRow
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Noted, Record
from pipeline_runtime.kafka.clients import (
    KafkaError,
    KafkaSettings,
    TopicPartition,
    close_spent,
    open_consumer,
    open_plain_producer,
    within,
)
from pipeline_runtime.kafka.delivered import (
    OffsetOutOfRangeError,
    open_deliverers_consumer,
    store_position,
    stored_position,
    tell_position,
)
from pipeline_runtime.kafka.peek import OpenTopic, newest_offsets
from pipeline_runtime.kafka.transactions import Doubtful, Fenced, OutgoingRecord, Transactions

log = logging.getLogger(__name__)

SEND_S = 4.0
"""A broker that has not confirmed records by then counts as away."""
ASK_S = 10.0
RENEW_S = 3600.0
"""A position that is not renewed is forgotten by Kafka after 7 days, as it is set by default."""
TELL_S = 1.0
"""How often Kafka is told how far a system is that keeps the position itself."""
TELL_LAST_S = 2.0
"""For how long Kafka is told the last of it."""
_POLL_MS = 500


class TopicWriter:
    """Sends records to one topic. Used by one thread."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka = kafka
        self.topic = topic
        self._producer: Any = None

    def send(self, records: Sequence[Record]) -> None:
        """Returns when Kafka has all of them. Raises SendFailed."""
        given_up = threading.Event()
        try:
            within(2 * SEND_S, lambda: self._send(records, given_up))
        except (KafkaError, OSError) as error:
            given_up.set()
            # A producer that has given a record up may not know which number comes next.
            self.close()
            raise SendFailed(str(error) or type(error).__name__) from error

    def _send(self, records: Sequence[Record], given_up: threading.Event) -> None:
        producer = self._producer
        if producer is None:
            producer = open_plain_producer(self._kafka, SEND_S)
            if given_up.is_set():
                close_spent(producer)
                return
            self._producer = producer
        futures = [
            producer.send(self.topic, each.value, each.key, timestamp_ms=each.time_ms) for each in records
        ]
        for future in futures:
            future.get(SEND_S)

    def close(self) -> None:
        if self._producer is not None:
            close_spent(self._producer)
            self._producer = None


class MadeAgain(Exception):
    """The system has come further than the stream has rows: they belong to an earlier stream of that name."""


@dataclass(frozen=True)
class Beginning:
    """Where a deliverer begins, and what it has to tell."""

    at: int
    gaps: tuple[Gap, ...] = ()


def beginning(stored: int | None, first: int, end: int, *, kept_outside: bool, told_to: int = 0) -> Beginning:
    """Returns where to begin in a stream that has the offsets from `first` to before `end`. Pure.

    `stored`: the offset after the last row that was delivered, or None if none was. `kept_outside`: it is the
    system that says so, and no row may come twice. `told_to`: what was deleted before this offset was told
    already. Raises MadeAgain.
    """
    if stored is not None and stored > end:
        if kept_outside:
            raise MadeAgain
        return Beginning(first, (("The stream was created again, so its earlier rows are lost", None),))
    deleted = first - max(stored or 0, told_to)
    gaps: tuple[Gap, ...] = ()
    if deleted > 0:
        gaps = (("Kafka had deleted rows before they were delivered", deleted),)
    return Beginning(max(first, stored or 0), gaps)


class StreamRows:
    """The rows of a sink element's own stream, and how far they were delivered. Used by one thread.

    The position is stored as that of a consumer group with the stream's name. `notes`: the topic that says,
    too, how far a system that keeps the position was; empty: none. Raises ConnectorError.
    """

    def __init__(
        self, kafka: KafkaSettings, topic: str, dead_letters: str, element: str, notes: str = ""
    ) -> None:
        self._kafka = kafka
        self._tp = TopicPartition(topic, 0)
        self._letters = TopicWriter(kafka, dead_letters)
        self._notes = TopicWriter(kafka, notes) if notes else None
        self._element = element
        self._consumer: Any = None
        self._at: int | None = None  # the offset after the last row that was delivered
        self._stored: int | None = None
        self._stored_s = 0.0
        self._tells = False  # the system keeps the position, and Kafka is only told it
        self._told: int | None = None  # what Kafka was told last, and may have
        self._told_to = 0
        self.gaps: tuple[Gap, ...] = ()
        """Rows that were lost before they were delivered; the caller takes them away."""

    def begin(self, position: int | None) -> None:
        """Goes to the position, or to the stored one if it is None."""
        self.close()

        def begun() -> Any:
            consumer = open_deliverers_consumer(self._kafka, self._tp.topic, self._tp, _POLL_MS)
            try:
                stored = stored_position(consumer, self._tp) if position is None else position
                first = consumer.beginning_offsets([self._tp])[self._tp]
                end = consumer.end_offsets([self._tp])[self._tp]
            except BaseException:
                close_spent(consumer)
                raise
            return consumer, stored, first, end

        try:
            self._consumer, stored, first, end = within(ASK_S, begun)
        except (KafkaError, OSError) as error:
            raise ConnectorError(f"Kafka does not answer ({type(error).__name__})") from error
        try:
            begin = beginning(stored, first, end, kept_outside=position is not None, told_to=self._told_to)
        except MadeAgain:
            raise ConnectorError(
                f"The system has the rows before offset {stored} of the stream {self._tp.topic}, and the "
                f"stream has offsets up to {end} only: it was made again. Nothing is written, so that no row "
                "comes twice. Its administrator removes the position that Fogline keeps there for this "
                "element; then the stream is written from its first row",
                lasting=True,
            ) from None
        self._at = self._stored = begin.at if stored is not None or begin.gaps else None
        if begin.gaps:  # a gap is told once
            self._told_to = begin.at
        self._tells, self._told = position is not None, None
        if begin.gaps or self._tells:  # the next `renew` stores where it begins
            self._stored, self._stored_s = None, float("-inf")
        self.gaps += begin.gaps
        self._consumer.seek(self._tp, begin.at)

    def next(self, rows_max: int) -> Batch | None:
        """Returns the next rows, or None if there is none within half a second."""
        try:
            first = self._position()
            polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=rows_max)
            end = self._position()
        except OffsetOutOfRangeError as error:  # `begin` counts them
            raise ConnectorError("Kafka has deleted rows before they were delivered") from error
        except (KafkaError, OSError) as error:
            raise ConnectorError(f"Kafka does not answer ({type(error).__name__})") from error
        records = [each for each in polled.get(self._tp, []) if not each.headers]
        if not records:
            return None
        return Batch(
            rows=[json.loads(each.value) for each in records],
            times_ms=[each.timestamp for each in records],
            offsets=[each.offset for each in records],
            first=first,
            end=end,
        )

    def store(self, end: int) -> None:
        """Notes that all rows before the offset are delivered."""
        self._at = end
        if self._stored == end and monotonic() - self._stored_s < RENEW_S:
            return
        try:
            within(ASK_S, lambda: store_position(self._consumer, self._tp, end))
        except (KafkaError, OSError) as error:
            raise ConnectorError(
                f"Kafka does not take how far was delivered ({type(error).__name__})"
            ) from error
        self._stored, self._stored_s = end, monotonic()

    def tell(self, end: int) -> None:
        """Tells Kafka the same of a system that keeps the position, for those who ask how many rows wait: not
        at each call, but `renew` and `close` tell the rest. It neither waits nor fails: no delivery depends
        on it."""
        self._at = end
        if monotonic() - self._stored_s >= TELL_S:
            self._tell(end)

    def renew(self) -> None:
        """Stores the position again, so that Kafka does not forget it."""
        if self._at is None:
            return
        if not self._tells:
            self.store(self._at)
        elif self._told != self._at or monotonic() - self._stored_s >= RENEW_S:
            self._tell(self._at)

    def _tell(self, end: int) -> None:
        def told(taken: bool) -> None:
            if taken:
                self._stored = end
            elif self._told == end:
                self._told = None

        self._told, self._stored_s = end, monotonic()
        try:
            tell_position(self._consumer, self._tp, end, told)
        except (KafkaError, OSError) as error:
            log.warning("Kafka was not told how far was delivered: %s", error)

    def _tell_last(self) -> None:
        if not self._tells or self._at is None or self._at == self._stored:
            return
        consumer, at = self._consumer, self._at
        try:
            within(TELL_LAST_S, lambda: store_position(consumer, self._tp, at))
        except (KafkaError, OSError) as error:
            log.warning("Kafka was not told how far was delivered: %s", error)
        else:
            self._stored = at

    def noted(self) -> Noted | None:
        """Returns what was noted last, or None if the topic for it is not there."""
        if self._notes is None:
            return Noted()
        try:
            found = newest(self._kafka, self._notes.topic)
            if found is None:
                return Noted()
            ends = newest_offsets(self._kafka, self._tp.topic, 1, ASK_S)
        except PositionTopicGone:
            return None
        except (KafkaError, OSError) as error:
            raise ConnectorError(f"Kafka does not answer ({type(error).__name__})") from error
        told = json.loads(found)
        end = max((end for _, end in ends.values()), default=0)
        return Noted(told["end"], told["mark"], is_past=told["end"] > end)

    def note(self, noted: Noted) -> None:
        """Notes how far the system has the rows."""
        if self._notes is None:
            return
        try:
            told = {"end": noted.end, "mark": dict(noted.mark)}
            self._notes.send([Record(json.dumps(told).encode())])
        except SendFailed as error:
            raise ConnectorError(
                f"Kafka does not take how far was delivered into {self._notes.topic}. If that topic is gone,"
                " deploy the pipeline: that makes it again"
            ) from error

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        """As Notes.change: whoever begins it shuts out those that have begun it before and not ended it."""
        assert self._notes is not None
        topic = self._notes.topic
        try:
            transactions = Transactions(self._kafka, topic)
            try:
                transactions.initialise()
                found = newest(self._kafka, topic)
                told: dict[str, Any] = {"end": 0, "mark": {}} if found is None else json.loads(found)
                now = changed(Noted(told["end"], told["mark"]))
                value = json.dumps({"end": now.end, "mark": dict(now.mark)}).encode()
                transactions.commit([OutgoingRecord(topic, value, None, int(time() * 1000))])
            finally:
                transactions.close()
        except Fenced as error:
            raise ConnectorError("Another process of this element has begun meanwhile") from error
        except (Doubtful, KafkaError, OSError) as error:
            raise ConnectorError(f"Kafka does not answer ({type(error).__name__})") from error

    def put_letters(self, letters: Sequence[Letter]) -> None:
        records = [
            Record(
                json.dumps(
                    {
                        "reason": each.reason,
                        "raw": json.dumps(each.row, ensure_ascii=False),
                        "element": self._element,
                        "time_ms": each.time_ms,
                    },
                    ensure_ascii=False,
                ).encode()
            )
            for each in letters
        ]
        try:
            self._letters.send(records)
        except SendFailed as error:
            raise ConnectorError("Kafka does not take the dead letters") from error

    def close(self) -> None:
        self._letters.close()
        if self._notes is not None:
            self._notes.close()
        if self._consumer is not None:
            self._tell_last()
            close_spent(self._consumer)
            self._consumer = None

    def _position(self) -> int:
        return int(self._consumer.position(self._tp))


def newest_row(kafka: KafkaSettings, topic: str) -> LastRow:
    """Raises KafkaError, OSError."""

    def asked() -> LastRow:
        with OpenTopic(kafka, topic) as found:
            starts = {tp: max(found.first[tp], end - 1) for tp, end in found.ends.items()}
            records = found.read(starts, found.ends)
            found.require(found.ends)
            if records:
                return LastRow(records[-1].timestamp_ms)
            return LastRow(is_deleted=any(found.ends.values()))

    return within(ASK_S, asked)


def topic_is_there(kafka: KafkaSettings, topic: str) -> bool:
    """Raises KafkaError."""
    consumer = open_consumer(kafka)
    try:
        return topic in within(ASK_S, consumer.topics)
    finally:
        with suppress(Exception):
            consumer.close()
