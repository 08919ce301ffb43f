"""Reads a topic of one partition continuously, as a read_committed consumer."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer

_TRIES = 5


class Tail:
    """Each call returns what has been committed since the last one."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._part = TopicPartition(topic, 0)
        self._position = 0
        self._consumer: KafkaConsumer | None = None

    def records(self) -> list[Any]:
        for left in reversed(range(_TRIES)):
            try:
                return self._read()
            except KafkaError:  # the broker was killed since the last call
                self.close()
                if not left:
                    raise
        raise AssertionError("unreachable")

    def values(self) -> list[dict[str, Any]]:
        return [json.loads(record.value) for record in self.records()]

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError):
                consumer.close()

    def _read(self) -> list[Any]:
        if self._consumer is None:
            self._consumer = self._open()
        consumer, part = self._consumer, self._part
        end = consumer.end_offsets([part])[part]
        found: list[Any] = []
        while consumer.position(part) < end:
            found += consumer.poll(200).get(part, [])
        self._position = consumer.position(part)
        return [record for record in found if not record.headers]

    def _open(self) -> KafkaConsumer:
        consumer = open_consumer(
            KafkaSettings(self._bootstrap),
            max_poll_records=20_000,
            retry_backoff_ms=5,
            reconnect_backoff_max_ms=200,
        )
        consumer.assign([self._part])
        consumer.seek(self._part, self._position)
        return consumer
