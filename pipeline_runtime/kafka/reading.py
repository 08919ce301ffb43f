"""Finds where a topic ends, and reads it up to there."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from pipeline_runtime.kafka.clients import (
    IsolationLevel,
    KafkaError,
    KafkaSettings,
    OffsetSpec,
    TopicPartition,
    close_spent,
    open_consumer,
)
from pipeline_runtime.kafka.kept_admin import KeptAdmin
from pipeline_runtime.kafka.transactions import Doubtful

_ANSWER_MS = 10_000
_NO_RECORD_S = 30.0  # that a reader waits for before it gives up
_POLL_MS = 500


class TopicEnd:
    """Asks where the first partition of a topic ends; Fogline's own topics have only one. Use it in one
    thread at a time.

    Its connection is kept: a claim asks three times.
    """

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._admin = KeptAdmin(kafka, _ANSWER_MS)
        self._topic = topic

    def ask(self, *, hidden: bool = False) -> int:
        """Returns the offset after the last record that a reader can see. Raises Doubtful when the broker
        does not answer.

        A transaction that is still open hides everything committed after its first record. With `hidden`, the
        offset after all of that is returned; a reader reaches it only when every open transaction has ended.
        """
        isolation = IsolationLevel.READ_UNCOMMITTED if hidden else IsolationLevel.READ_COMMITTED
        tp = TopicPartition(self._topic, 0)
        try:
            answer = self._admin.ask(
                lambda client: client.list_partition_offsets({tp: OffsetSpec.LATEST}, isolation)
            )
        except KafkaError as error:
            raise Doubtful(f"{self._topic}: its end could not be read ({error})") from error
        end: int = answer[tp].offset
        return end

    def close(self) -> None:
        self._admin.close()


def committed_values(
    kafka: KafkaSettings, topic: str, offset: int = 0, *, hidden: bool = False
) -> Iterator[bytes]:
    """Yields the values of what `committed_records` yields."""
    return (value for _, value in committed_records(kafka, topic, offset, hidden=hidden))


def committed_records(
    kafka: KafkaSettings, topic: str, offset: int = 0, *, since_ms: int | None = None, hidden: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yields the time (ms) and the value of each record of the topic's first partition, from `offset` to its
    end at the time of the call. With `since_ms`, they begin at the first one of that time or later. See
    TopicEnd.ask for `hidden`.

    Raises Doubtful when the broker does not answer in time, or an open transaction does not end in time.
    """
    ends = TopicEnd(kafka, topic)
    consumer = None
    try:
        end = ends.ask(hidden=hidden)
        consumer = open_consumer(kafka, fetch_max_wait_ms=100)
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        if since_ms is not None:
            found = consumer.offsets_for_times({tp: max(0, since_ms)})[tp]
            offset = end if found is None else max(offset, found.offset)
        consumer.seek(tp, max(offset, consumer.beginning_offsets([tp])[tp]))
        position, deadline = -1, 0.0
        while (at := consumer.position(tp)) < end:
            if at != position:
                position, deadline = at, monotonic() + _NO_RECORD_S
            elif monotonic() > deadline:
                raise Doubtful(f"{topic}: read to offset {at} of {end}, and no further")
            for record in consumer.poll(_POLL_MS).get(tp, []):
                yield record.timestamp, record.value
    except KafkaError as error:
        raise Doubtful(f"{topic}: it could not be read ({error})") from error
    finally:
        ends.close()
        if consumer is not None:
            close_spent(consumer)


def has_unread(kafka: KafkaSettings, topic: str, offset: int) -> bool:
    """Returns whether a committed record stands at `offset` or later. The topic's end alone does not say so,
    since markers that nobody reads stand after its last record. Raises Doubtful."""
    return any(True for _ in committed_values(kafka, topic, offset, hidden=True))
