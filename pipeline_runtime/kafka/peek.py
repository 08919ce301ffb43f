"""Reads the newest records of a topic, for the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from kafka import TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer


@dataclass(frozen=True)
class PeekedRecord:
    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    value: str


def peek(kafka: KafkaSettings, topic: str, limit: int, timeout_s: float = 3.0) -> list[PeekedRecord]:
    """Returns the newest `limit` committed records, oldest first, or [] when the topic has none or is
    unknown."""
    consumer = open_consumer(kafka, fetch_max_wait_ms=100)
    try:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        if not partitions:
            return []
        ends = consumer.end_offsets(partitions)
        starts = consumer.beginning_offsets(partitions)
        consumer.assign(partitions)
        records: list[PeekedRecord] = []
        for tp in partitions:
            # Commit markers take offsets too: one per transaction, so at most as many as records.
            consumer.seek(tp, max(starts[tp], ends[tp] - 2 * limit))
        deadline = monotonic() + timeout_s
        while monotonic() < deadline and any(consumer.position(tp) < ends[tp] for tp in partitions):
            for batch in consumer.poll(200).values():
                records += [
                    PeekedRecord(
                        record.partition,
                        record.offset,
                        record.timestamp,
                        record.key.decode(errors="replace") if record.key is not None else None,
                        (record.value or b"").decode(errors="replace"),
                    )
                    for record in batch
                    if not record.headers
                ]
        records.sort(key=lambda record: (record.timestamp_ms, record.partition, record.offset))
        return records[-limit:]
    finally:
        consumer.close()
