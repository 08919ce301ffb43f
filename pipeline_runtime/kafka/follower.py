"""Follows many topics with one consumer, from any place on, with a bound on what one look reads."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, Literal

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.kafka.peek import PeekedRecord, peeked

_POLL_MS = 200


class Follower:
    """Used by one thread at a time. Every method raises KafkaError while the broker is away."""

    def __init__(self, kafka: KafkaSettings, reset: Literal["earliest", "latest"] = "latest") -> None:
        """`reset`: where reading goes on if Kafka has no longer what comes next."""
        self._consumer: Any = open_consumer(kafka, fetch_max_wait_ms=100, auto_offset_reset=reset)
        self._followed: set[TopicPartition] = set()

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Returns the partitions of a topic, or [] if it is unknown."""
        known = self._consumer.partitions_for_topic(topic) or ()
        return [TopicPartition(topic, partition) for partition in sorted(known)]

    def bounds(self, partitions: list[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Returns the first offset of each partition, and the one behind its last record."""
        if not partitions:
            return {}
        first = self._consumer.beginning_offsets(partitions)
        ends = self._consumer.end_offsets(partitions)
        return {tp: (first[tp], ends[tp]) for tp in partitions}

    def follow(self, positions: Mapping[TopicPartition, int]) -> None:
        """Reads on from these offsets, and nothing else."""
        if set(positions) != self._followed:
            self._consumer.assign(list(positions))
            self._followed = set(positions)
        for tp, offset in positions.items():
            self._consumer.seek(tp, offset)

    def read(self, rows_max: int, seconds: float) -> list[tuple[TopicPartition, PeekedRecord]]:
        """Returns what was committed since, at most `rows_max` records. Waits no longer than `seconds`."""
        found: list[tuple[TopicPartition, PeekedRecord]] = []
        deadline = monotonic() + seconds
        while self._followed and len(found) < rows_max and monotonic() < deadline:
            batches = self._consumer.poll(_POLL_MS, max_records=rows_max - len(found))
            for tp, records in batches.items():
                found += [(tp, peeked(record)) for record in records if not record.headers]
            if not batches:
                break
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """Returns where the next read goes on, also behind what is no row."""
        return {tp: self._consumer.position(tp) for tp in self._followed}

    def close(self) -> None:
        self._consumer.close()
