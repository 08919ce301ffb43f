"""Creates, deletes and trims topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_admin, open_consumer

TopicKind = Literal["stream", "position", "dead", "journal", "released"]

TOPIC_CONFIGS: dict[TopicKind, dict[str, str]] = {
    # Records carry event time as their timestamp, and a replayed recording's may be years old. Time retention
    # would delete them at once, so streams are bounded by size. The broker must not refuse records more than
    # an hour ahead either: a window's end may be, or a recording that is replayed fast.
    "stream": {
        "retention.ms": "-1",
        "retention.bytes": str(1024**3),
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(2**63 - 1),
    },
    # Only its last record counts, and that one never expires: what is deleted are whole segments before it.
    "position": {
        "retention.ms": "-1",
        "retention.bytes": str(1024**2),
        "segment.bytes": str(1024**2),
        "message.timestamp.type": "LogAppendTime",
    },
    # One clock that is far ahead may make all other rows late. Then there are as many letters as rows.
    "dead": {
        "retention.ms": str(30 * 24 * 3600 * 1000),
        "retention.bytes": str(1024**3),
        "message.timestamp.type": "LogAppendTime",
    },
    # It never expires, by time or by size. It is trimmed up to the oldest retained checkpoint.
    "journal": {
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
    },
    # The journal has all of these records. They only arrive sooner here.
    "released": {"retention.ms": str(3600 * 1000), "message.timestamp.type": "LogAppendTime"},
}


@dataclass(frozen=True)
class Topic:
    name: str
    kind: TopicKind = "stream"
    partitions: int = 1


class TopicsFailed(RuntimeError):
    """Topics could not be created, deleted or trimmed. The message names them and the broker's answer."""


def ensure_topics(kafka: KafkaSettings, topics: Iterable[Topic], timeout_s: float = 30) -> list[str]:
    """Creates the topics that do not exist yet, waits until they can be used, and returns the new names."""
    wanted = {topic.name: topic for topic in topics}
    with _admin(kafka) as admin:
        existing = set(admin.list_topics())
        missing = [topic for name, topic in wanted.items() if name not in existing]
        if missing:
            new = [
                NewTopic(topic.name, topic.partitions, -1, topic_configs=TOPIC_CONFIGS[topic.kind])
                for topic in missing
            ]
            try:
                admin.create_topics(new, timeout_ms=int(timeout_s * 1000))
            except TopicAlreadyExistsError:
                pass  # another process was faster
            except KafkaError as error:
                names = ", ".join(topic.name for topic in missing)
                raise TopicsFailed(f"Kafka did not create {names}: {error}") from error
            admin.wait_for_topics([topic.name for topic in missing], timeout_ms=int(timeout_s * 1000))
    return [topic.name for topic in missing]


def delete_topics(kafka: KafkaSettings, names: Iterable[str]) -> None:
    with _admin(kafka) as admin:
        existing = set(admin.list_topics())
        doomed = [name for name in names if name in existing]
        if doomed:
            try:
                admin.delete_topics(doomed)
            except UnknownTopicOrPartitionError:
                pass
            except KafkaError as error:
                # Only its name: the text repeats the whole request and response, and users read this.
                names = ", ".join(doomed)
                raise TopicsFailed(f"Kafka did not delete {names}: {type(error).__name__}") from error


def trim_topics(kafka: KafkaSettings, points: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """Deletes the records before an offset of each (topic, partition), for good.

    Returns how many offsets were deleted, for each partition that changed. Topics that are gone are left out;
    nothing uncommitted is deleted. Raises TopicsFailed when the broker refuses some of them; the others are
    trimmed.
    """
    with _admin(kafka) as admin:
        existing = set(admin.list_topics())
        wanted = {TopicPartition(*point): at for point, at in points.items() if point[0] in existing}
        if not wanted:
            return {}
        consumer = open_consumer(kafka)
        try:
            first = consumer.beginning_offsets(list(wanted))
            end = consumer.end_offsets(list(wanted))
            # The broker would refuse an offset after its end.
            behind = {tp: min(at, end[tp]) for tp, at in wanted.items() if first[tp] < min(at, end[tp])}
            if behind:
                admin.delete_records(behind)
        except KafkaError as error:
            names = ", ".join(sorted({tp.topic for tp in wanted}))
            raise TopicsFailed(f"Kafka did not trim {names}: {error}") from error
        finally:
            consumer.close()
    return {(tp.topic, tp.partition): at - first[tp] for tp, at in behind.items()}


class _admin:
    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    def __enter__(self) -> Any:
        self._client = open_admin(self._kafka)
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
