"""Asks where many topics end, with one request and a connection that is kept."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pipeline_runtime.kafka.clients import (
    IsolationLevel,
    KafkaError,
    KafkaSettings,
    OffsetSpec,
    TopicPartition,
    close_spent,
    open_admin,
    within,
)

_ANSWER_MS = 5_000
_NO_ANSWER_S = 3 * _ANSWER_MS / 1000  # for a connection, the leaders and the ends


class TopicEnds:
    """Used by one thread at a time."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._client: Any = None

    def ask(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the offset after the last committed record of each partition. Raises KafkaError when the
        broker does not answer, or does not know one of them."""
        wanted = list(partitions)
        try:
            self._client, found = within(_NO_ANSWER_S, partial(self._ask, self._client, wanted))
            return found
        except KafkaError:
            self.close()
            raise

    def _ask(self, client: Any, wanted: list[TopicPartition]) -> tuple[Any, dict[TopicPartition, int]]:
        """Returns the client that was used, and its answer."""
        if client is None:
            client = open_admin(self._kafka, request_timeout_ms=_ANSWER_MS, bootstrap_timeout_ms=_ANSWER_MS)
        question = dict.fromkeys(wanted, OffsetSpec.LATEST)
        answer = client.list_partition_offsets(question, IsolationLevel.READ_COMMITTED)
        return client, {tp: answer[tp].offset for tp in wanted}

    def close(self) -> None:
        if self._client is not None:
            close_spent(self._client)
            self._client = None
