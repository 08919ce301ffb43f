"""How far a reader that is no group of Fogline's has come: stored in Kafka as the position of a consumer
group."""

from __future__ import annotations

from typing import Any

from kafka.errors import OffsetOutOfRangeError as OffsetOutOfRangeError  # others take it from here
from kafka.structs import OffsetAndMetadata

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer


def open_deliverers_consumer(kafka: KafkaSettings, name: str, tp: TopicPartition, wait_ms: int) -> Any:
    """Returns a consumer that reads the partition and may store positions under the name.

    A poll behind a position that Kafka has deleted raises OffsetOutOfRangeError: it goes nowhere by itself.
    """
    consumer = open_consumer(kafka, group_id=name, fetch_max_wait_ms=wait_ms, auto_offset_reset="none")
    consumer.assign([tp])
    return consumer


def stored_position(consumer: Any, tp: TopicPartition) -> int | None:
    """Returns the position that was stored last, or None. Raises KafkaError."""
    position = consumer.committed(tp)
    return None if position is None else int(position)


def store_position(consumer: Any, tp: TopicPartition, end: int) -> None:
    """Raises KafkaError."""
    consumer.commit({tp: OffsetAndMetadata(end, "", -1)})


def noted_position(consumer: Any, tp: TopicPartition) -> tuple[int, str] | None:
    """Returns the position that was stored last, and what its writer has noted beside it, or None. Raises
    KafkaError."""
    found = consumer.committed(tp, metadata=True)
    return None if found is None else (int(found.offset), str(found.metadata))
