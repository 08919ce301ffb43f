"""Reads on in a topic of one partition, as a read_committed consumer."""

from __future__ import annotations

import json
from typing import Any

from kafka import KafkaConsumer, TopicPartition


class Tail:
    """Each call gives what has been committed since the last one. A consumer for each: none of them is
    in the broker's way while something is measured."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._part = TopicPartition(topic, 0)
        self._position = 0

    def records(self) -> list[Any]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            isolation_level="read_committed",
            enable_auto_commit=False,
            max_poll_records=20_000,
            retry_backoff_ms=5,
        )
        try:
            consumer.assign([self._part])
            consumer.seek(self._part, self._position)
            end = consumer.end_offsets([self._part])[self._part]
            found: list[Any] = []
            while consumer.position(self._part) < end:
                found += consumer.poll(200).get(self._part, [])
            self._position = consumer.position(self._part)
            return [record for record in found if not record.headers]
        finally:
            consumer.close()

    def values(self) -> list[dict[str, Any]]:
        return [json.loads(record.value) for record in self.records()]
