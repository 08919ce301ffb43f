"""Reads a range of offsets of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer

_POLL_MS = 200


class RangeGone(RuntimeError):
    """The records that a batch needs are no longer in the topic."""


class PartitionReader:
    """Keeps its consumer between ranges, so that consecutive ones cost one fetch."""

    def __init__(self, kafka: KafkaSettings, topic: str, partition: int) -> None:
        self._tp = TopicPartition(topic, partition)
        self._consumer: KafkaConsumer = open_consumer(
            kafka,
            fetch_max_wait_ms=20,
            max_poll_records=10_000,
            max_partition_fetch_bytes=8 * 1024 * 1024,
            fetch_max_bytes=64 * 1024 * 1024,
            auto_offset_reset="none",
        )
        self._consumer.assign([self._tp])
        self._position = -1

    def read(self, start: int, end: int) -> Iterator[list[Any]]:
        """The committed records with start <= offset < end, in lists. Raises RangeGone."""
        if self._position != start:
            first = self._consumer.beginning_offsets([self._tp])[self._tp]
            if first > start:
                raise RangeGone(
                    f"{self._tp.topic}-{self._tp.partition} begins at offset {first}, but {start} is needed:"
                    " its retention is shorter than what this group lags behind"
                )
            self._consumer.seek(self._tp, start)
        # A task may be ended in the middle of this: the consumer stands somewhere else then.
        self._position = -1
        position = start
        while position < end:
            records = self._consumer.poll(_POLL_MS).get(self._tp, [])
            position = self._consumer.position(self._tp)
            if position > end:
                records = [record for record in records if record.offset < end]
            if records:
                yield records
        # Past `end`, when the last poll brought more: the next range seeks back.
        self._position = position

    def close(self) -> None:
        self._consumer.close()
