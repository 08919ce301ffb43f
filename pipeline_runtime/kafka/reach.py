"""Checks whether topics still have the records that a group has to read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer


@dataclass(frozen=True)
class Gone:
    """A partition that begins after the offset that is needed."""

    topic: str
    partition: int
    needed: int
    first: int


def gone(kafka: KafkaSettings, needed: Mapping[tuple[str, int], int]) -> list[Gone]:
    """Returns what the topics no longer have, of `needed`: (topic, partition) -> the first offset to read.
    Raises KafkaError."""
    consumer = open_consumer(kafka, bootstrap_timeout_ms=3000)
    try:
        first = consumer.beginning_offsets([TopicPartition(*point) for point in needed])
    finally:
        consumer.close()
    found = [Gone(*point, at, first[TopicPartition(*point)]) for point, at in needed.items()]
    return [item for item in found if item.first > item.needed]
