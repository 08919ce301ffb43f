"""Asks where many topics end, with one request and a connection that is kept."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline_runtime.kafka.clients import IsolationLevel, KafkaSettings, OffsetSpec, TopicPartition
from pipeline_runtime.kafka.kept_admin import KeptAdmin

_ANSWER_MS = 5_000


class TopicEnds:
    """Used by one thread at a time."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._admin = KeptAdmin(kafka, _ANSWER_MS)

    def ask(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the offset after the last committed record of each partition. Raises KafkaError when the
        broker does not answer, or does not know one of them."""
        wanted = list(partitions)
        question = dict.fromkeys(wanted, OffsetSpec.LATEST)
        answer = self._admin.ask(
            lambda client: client.list_partition_offsets(question, IsolationLevel.READ_COMMITTED)
        )
        return {tp: answer[tp].offset for tp in wanted}

    def close(self) -> None:
        self._admin.close()
