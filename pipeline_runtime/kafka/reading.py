"""Finds where a topic ends, and reads it up to there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import Any

from pipeline_runtime.kafka.clients import (
    IsolationLevel,
    KafkaError,
    KafkaSettings,
    OffsetSpec,
    TopicPartition,
    close_spent,
    open_admin,
    open_consumer,
    within,
)
from pipeline_runtime.kafka.transactions import Doubtful

_ANSWER_MS = 10_000
_NO_ANSWER_S = 3 * _ANSWER_MS / 1000  # for a connection, the leader and the end
_POLL_MS = 500


class TopicEnd:
    """Asks where the first partition of a topic ends; Fogline's own topics have only one. Use it in one
    thread at a time.

    Its connection is kept. A claim asks three times, and opening a connection takes longer than the answer.
    """

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._client: Any = None

    def ask(self, *, hidden: bool = False) -> int:
        """Returns the offset after the last record that a reader can see. Raises Doubtful when the broker
        does not answer.

        A transaction that is still open hides everything committed after its first record. With `hidden`, the
        offset after all of that is returned; a reader reaches it only when every open transaction has ended.
        """
        isolation = IsolationLevel.READ_UNCOMMITTED if hidden else IsolationLevel.READ_COMMITTED
        try:
            self._client, end = within(_NO_ANSWER_S, partial(self._ask, self._client, isolation))
            return end
        except KafkaError as error:
            self.close()
            raise Doubtful(f"{self._topic}: its end could not be read ({error})") from error

    def _ask(self, client: Any, isolation: IsolationLevel) -> tuple[Any, int]:
        """Returns the client that was used, and its answer."""
        if client is None:
            client = open_admin(self._kafka, request_timeout_ms=_ANSWER_MS, bootstrap_timeout_ms=_ANSWER_MS)
        tp = TopicPartition(self._topic, 0)
        return client, client.list_partition_offsets({tp: OffsetSpec.LATEST}, isolation)[tp].offset

    def close(self) -> None:
        if self._client is not None:
            close_spent(self._client)
            self._client = None


def committed_values(
    kafka: KafkaSettings, topic: str, offset: int = 0, *, hidden: bool = False
) -> Iterator[bytes]:
    """Yields the values of the topic's first partition, from `offset` to its end at the time of the call. See
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
        consumer.seek(tp, max(offset, consumer.beginning_offsets([tp])[tp]))
        position, deadline = -1, 0.0
        while (at := consumer.position(tp)) < end:
            if at != position:
                position, deadline = at, monotonic() + _NO_ANSWER_S
            elif monotonic() > deadline:
                raise Doubtful(f"{topic}: read to offset {at} of {end}, and no further")
            for record in consumer.poll(_POLL_MS).get(tp, []):
                yield record.value
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
