"""Reads the records of a topic around a time in the order in which they came, to trace rows."""

from __future__ import annotations

from dataclasses import dataclass

from kafka import TopicPartition

from pipeline_runtime.kafka.peek import Kafka, OpenTopic, PeekedRecord

_TIMEOUT_S = 10.0
"""Some ten thousand records take seconds on a busy machine."""


@dataclass(frozen=True)
class Arrived:
    """Records by partition, and there by offset."""

    records: list[PeekedRecord]
    removed: bool  # the topic may have had older ones of that time, and has removed them
    left_out: bool  # it may have others of that time, which were not read since they are too many
    late: bool  # Kafka did not give all of them in time


def read_arrived(
    kafka: Kafka,
    topic: str,
    from_ms: int | None,
    until_ms: int | None,
    near_ms: int,
    most: int,
    timeout_s: float = _TIMEOUT_S,
) -> Arrived:
    """Returns the records that came from the first one of time `from_ms` on, to behind the last one of time
    `until_ms`. None stands for no limit. Of more than about `most`, returns those around the time `near_ms`.
    Raises KafkaError."""
    with OpenTopic(kafka, topic, timeout_s) as found:
        each = max(1, most // max(1, len(found.ends)))
        begins = dict(found.first) if from_ms is None else found.offsets_at(from_ms)
        ends = dict(found.ends) if until_ms is None else found.offsets_behind(until_ms)
        fits = all(end - begins[tp] <= each for tp, end in ends.items())
        near = ends if fits else found.offsets_at(near_ms + 1)
        cut_ends = {tp: max(begins[tp], min(end, near[tp] + each // 2)) for tp, end in ends.items()}
        cut_begins = {tp: max(begins[tp], end - each) for tp, end in cut_ends.items()}
        records = found.read(cut_begins, cut_ends)
        late = found.behind(cut_ends)
        removed = any(0 < found.first[tp] == begins[tp] for tp in begins)
    records.sort(key=lambda record: (record.partition, record.offset))
    cut = cut_begins != begins or (until_ms is not None and cut_ends != ends)
    return Arrived(records, removed, left_out=cut, late=late)


def record_at(kafka: Kafka, topic: str, partition: int, offset: int) -> PeekedRecord | None:
    """Returns a committed record, or None if the topic has none there. Raises KafkaError."""
    at = TopicPartition(topic, partition)
    with OpenTopic(kafka, topic) as found:
        if at not in found.ends or not found.first[at] <= offset < found.ends[at]:
            return None
        starts, ends = dict(found.ends), dict(found.ends)
        starts[at], ends[at] = offset, offset + 1
        return next(iter(found.read(starts, ends)), None)
