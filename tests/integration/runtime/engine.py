"""Runs groups of real pipeline documents on one ReplicaHost, and reads what they did from Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from pipeline_runtime.journal.records import Claim, Commit, Record, decode
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.model.desired import ClaimOrder, ReplicaStatus, Role
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec, Pace
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups, topics
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.replica import Replica
from tests.directing import tell
from tests.handover.lawful import assert_lawful
from tests.waiting import PATIENCE_S, wait_until

STOP_S = 60.0
SOON = Pace(latency_ms=100)

Element = dict[str, Any]


@dataclass
class Node:
    """What runs replicas in these tests: a host, and the directory below which they keep their state."""

    host: ReplicaHost
    directory: Path
    files: dict[str, Path]
    running: list[Replica] = field(default_factory=list)

    def replica_directory(self, spec: GroupSpec, generation: int = 1) -> Path:
        return self.directory / spec.id / f"g{generation}"

    def start(self, spec: GroupSpec, generation: int = 1) -> Replica:
        replica = Replica(spec, self.replica_directory(spec, generation), self.host)
        self.running.append(replica)
        replica.start()
        return replica

    def own(self, spec: GroupSpec, *, over: int = 0, order: str | None = None) -> Replica:
        """Start a replica that is to own; it may not yet own when this returns."""
        replica = self.start(spec)
        tell(replica, order=ClaimOrder(id=order or uuid4().hex, over=Epoch(over)))
        return replica

    def stop_all(self) -> None:
        for replica in self.running:
            replica.stop(STOP_S)
        self.running.clear()


class Deployed:
    """A pipeline's groups with all their topics."""

    def __init__(
        self,
        kafka: str,
        elements: Iterable[Element],
        groups: dict[str, list[str]] | None = None,
        *,
        files: Iterable[str] = (),
        pace: Pace = SOON,
    ) -> None:
        document = {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "laws"},
            "spec": {
                "elements": list(elements),
                "groups": [{"id": id, "elements": members} for id, members in (groups or {}).items()],
            },
        }
        self.kafka = kafka
        self.id = f"d{uuid4().hex[:9]}"
        hashes = dict.fromkeys(files, "0" * 64)
        planned = plan_groups(parse_document(document), self.id, default_registry(), hashes)
        specs = tuple(spec.model_copy(update={"pace": pace}) for spec in planned)
        self.specs = {spec.group: spec for spec in specs}
        wanted = {topic.name: topic for spec in specs for topic in topics(spec)}
        ensure_topics(
            KafkaSettings(kafka), [Topic(item.name, item.kind, item.partitions) for item in wanted.values()]
        )

    def run(self, node: Node) -> dict[str, Replica]:
        return {group: node.own(spec) for group, spec in self.specs.items()}

    def records(self, element: str, port: str = "out") -> list[Any]:
        """The JSON values of a stream, in order (by partition)."""
        return values(self.kafka, f"fl.{self.id}.{element}.{port}")

    def dead_letters(self, element: str) -> list[Any]:
        return self.records(element, "dead")

    def journal(self, group: str) -> list[Record]:
        return [decode(record.value) for record in read_all(self.kafka, self.specs[group].journal)]

    def commits(self, group: str) -> list[Commit]:
        return [record for record in self.journal(group) if isinstance(record, Commit)]

    def claims(self, group: str) -> list[Claim]:
        return [record for record in self.journal(group) if isinstance(record, Claim)]

    def assert_journal_lawful(self, group: str) -> None:
        assert_lawful(self.journal(group))


def create_topic(kafka: str, partitions: int = 1) -> str:
    """A topic of the user's own. It keeps what it has: rows of years ago, which tests send, are too old for
    the default retention, and the broker looks every five minutes."""
    name = f"user-{uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    try:
        admin.create_topics([NewTopic(name, partitions, 1, topic_configs={"retention.ms": "-1"})])
        admin.wait_for_topics([name])
    finally:
        admin.close()
    return name


def produce(
    kafka: str,
    topic: str,
    records: Iterable[Any],
    *,
    key: Callable[[Any], str] | None = None,
    time_ms: Callable[[Any], int] | None = None,
    partition: Callable[[Any], int | None] | None = None,
) -> None:
    """Send values: bytes (or None) as they are, anything else as JSON."""
    producer = _producers.get(kafka)
    if producer is None:
        producer = _producers[kafka] = KafkaProducer(bootstrap_servers=kafka, linger_ms=5)
    for record in records:
        raw = record if isinstance(record, bytes | None) else json.dumps(record).encode()
        plain = isinstance(record, bytes | None)
        producer.send(
            topic,
            value=raw,
            key=key(record).encode() if key and not plain else b"nothing" if record is None else None,
            timestamp_ms=time_ms(record) if time_ms and not plain else None,
            partition=partition(record) if partition and not plain else None,
        )
    producer.flush()


class Reading:
    """What a test has read of a broker's topics: a wait that looks again reads only what is new."""

    def __init__(self, kafka: str) -> None:
        self._consumer = open_consumer(KafkaSettings(kafka))
        # What the broker has acknowledged may stay hidden for some milliseconds, until it has told each
        # partition that the transaction has ended: where a topic ends is asked without regard to that.
        self._whole = KafkaConsumer(
            bootstrap_servers=kafka, isolation_level="read_uncommitted", enable_auto_commit=False
        )
        self._found: dict[str, list[Any]] = {}
        self._positions: dict[TopicPartition, int] = {}

    def all(self, topic: str) -> list[Any]:
        """An open transaction is waited for: the broker ends it in time."""
        consumer = self._consumer
        parts = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        assert parts, f"there is no topic {topic}"
        found = self._found.setdefault(topic, [])
        ends = self._whole.end_offsets(parts)
        behind = [part for part in parts if self._positions.get(part, 0) < ends[part]]
        if behind:
            consumer.assign(behind)
            for part in behind:
                if part in self._positions:
                    consumer.seek(part, self._positions[part])
                else:
                    consumer.seek_to_beginning(part)
            while any(consumer.position(part) < ends[part] for part in behind):
                for records in consumer.poll(200).values():
                    found += [record for record in records if not record.headers]
            self._positions |= {part: consumer.position(part) for part in behind}
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def close(self) -> None:
        self._consumer.close()
        self._whole.close()


# For the running test, by the broker's address. Each takes longer to open than most requests to it.
_readings: dict[str, Reading] = {}
_producers: dict[str, KafkaProducer] = {}


def end_clients() -> None:
    """What was read is forgotten with them."""
    for clients in (_readings, _producers):
        while clients:
            clients.popitem()[1].close()


def read_all(kafka: str, topic: str) -> list[Any]:
    """All committed records that the topic has had in this test, markers of streams' ends left out."""
    if kafka not in _readings:
        _readings[kafka] = Reading(kafka)
    return _readings[kafka].all(topic)


def values(kafka: str, topic: str) -> list[Any]:
    return [json.loads(record.value) for record in read_all(kafka, topic)]


def owning(replica: Replica) -> ReplicaStatus:
    return wait_for_status(replica, lambda status: status.role is Role.OWNER, "to own")


def wait_for_status(
    replica: Replica, condition: Callable[[ReplicaStatus], bool], what: str, timeout_s: float = PATIENCE_S
) -> ReplicaStatus:
    status: ReplicaStatus = wait_until(
        lambda: status if condition(status := replica.status()) else None,
        lambda: f"{replica.spec.group} {what}: {replica.status()}",
        timeout_s,
    )
    return status
