"""The Kafka ends of connectors: the topic that an ingester fills, and the stream that a deliverer empties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from pipeline_runtime.connectors.delivery import Letter
from pipeline_runtime.connectors.intake import SendFailed
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Record
from pipeline_runtime.kafka.clients import (
    KafkaError,
    KafkaSettings,
    TopicPartition,
    close_spent,
    open_consumer,
    open_plain_producer,
    within,
)
from pipeline_runtime.kafka.delivered import open_deliverers_consumer, store_position, stored_position

SEND_S = 4.0
"""A broker that has not confirmed records by then counts as away."""
ASK_S = 10.0
RENEW_S = 3600.0
"""A position that is not renewed is forgotten by Kafka after 7 days, as it is set by default."""
_POLL_MS = 500


class TopicWriter:
    """Sends records to one topic. Used by one thread."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._producer: Any = None

    def send(self, records: Sequence[Record]) -> None:
        """Returns when Kafka has all of them. Raises SendFailed."""
        try:
            within(2 * SEND_S, lambda: self._send(records))
        except (KafkaError, OSError) as error:
            # A producer that has given a record up may not know which number comes next.
            self.close()
            raise SendFailed(str(error) or type(error).__name__) from error

    def _send(self, records: Sequence[Record]) -> None:
        if self._producer is None:
            self._producer = open_plain_producer(self._kafka, SEND_S)
        futures = [
            self._producer.send(self._topic, each.value, each.key, timestamp_ms=each.time_ms)
            for each in records
        ]
        for future in futures:
            future.get(SEND_S)

    def close(self) -> None:
        if self._producer is not None:
            close_spent(self._producer)
            self._producer = None


class StreamRows:
    """The rows of a sink element's own stream, and how far they were delivered. Used by one thread.

    The position is stored as that of a consumer group with the stream's name. Raises ConnectorError.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, dead_letters: str, element: str) -> None:
        self._kafka = kafka
        self._tp = TopicPartition(topic, 0)
        self._letters = TopicWriter(kafka, dead_letters)
        self._element = element
        self._consumer: Any = None
        self._stored: int | None = None
        self._stored_s = 0.0
        self.left_out = 0
        """Offsets of rows that Kafka has deleted before they were delivered; the caller sets it to 0."""

    def begin(self, position: int | None) -> None:
        """Goes to the position, or to the stored one if it is None."""
        self.close()

        def begun() -> Any:
            consumer = open_deliverers_consumer(self._kafka, self._tp.topic, self._tp, _POLL_MS)
            stored = stored_position(consumer, self._tp) if position is None else position
            first = consumer.beginning_offsets([self._tp])[self._tp]
            return consumer, stored, first

        try:
            self._consumer, stored, first = within(ASK_S, begun)
        except (KafkaError, OSError) as error:
            raise ConnectorError(f"Kafka does not answer ({type(error).__name__})") from error
        self._stored = stored
        if stored is not None and stored < first:
            self.left_out += first - stored
        self._consumer.seek(self._tp, max(first, stored or 0))

    def next(self, rows_max: int) -> Batch | None:
        """Returns the next rows, or None if there is none within half a second."""
        first = self._position()
        try:
            polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=rows_max)
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
            end=self._position(),
        )

    def store(self, end: int) -> None:
        """Notes that all rows before the offset are delivered."""
        if self._stored == end and monotonic() - self._stored_s < RENEW_S:
            return
        try:
            within(ASK_S, lambda: store_position(self._consumer, self._tp, end))
        except (KafkaError, OSError) as error:
            raise ConnectorError(
                f"Kafka does not take how far was delivered ({type(error).__name__})"
            ) from error
        self._stored, self._stored_s = end, monotonic()

    def renew(self) -> None:
        """Stores the position again, so that Kafka does not forget it."""
        if self._stored is not None:
            self.store(self._stored)

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
        if self._consumer is not None:
            close_spent(self._consumer)
            self._consumer = None

    def _position(self) -> int:
        return int(self._consumer.position(self._tp))


def topic_is_there(kafka: KafkaSettings, topic: str) -> bool:
    """Raises KafkaError."""
    consumer = open_consumer(kafka)
    try:
        return topic in within(ASK_S, consumer.topics)
    finally:
        with suppress(Exception):
            consumer.close()
