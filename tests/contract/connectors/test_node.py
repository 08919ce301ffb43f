"""The connectors of a node: real processes, a real broker of MQTT and a real Kafka, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from pipeline_runtime.connectors.sdk import Record
from pipeline_runtime.connectors.spool import Spool
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.desired import ClaimOrder, DesiredReplica, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, intake_topic
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.sealing import seal
from tests.brokers import Broker
from tests.waiting import wait_until
from workers.node.connectors import Concerns, Connectors

pytestmark = pytest.mark.integration
KEY = "cluster-key"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


class Node:
    """What its agent would say: one group with mqtt-in, in which role, with which connection."""

    def __init__(self, kafka: str, directory: Path, deployment: str, broker: Broker) -> None:
        self.role = Role.OWNER
        self.connections: tuple[SealedConnection, ...] = (sealed(broker, 1),)
        self.wanted = True
        params = {"connection": "b", "topics": ["a"], "columns": [{"name": "v", "type": "number"}]}
        element = ElementSpec(id="in", type="mqtt-in", params=params)
        self.spec = GroupSpec(deployment=deployment, pipeline="p", group="in", elements=(element,))
        self.connectors = Connectors(
            KafkaSettings(kafka), directory / "connectors", KEY, self._replicas, lambda: None
        )

    @property
    def status(self) -> ReplicaStatus:
        [found] = self.connectors.with_connectors((ReplicaStatus(group=self.spec.id, role=self.role),))
        return found

    @property
    def state(self) -> str:
        return self.status.connectors[0].state if self.status.connectors else ""

    @property
    def why(self) -> str:
        return self.status.stalled.why if self.status.stalled else ""

    def _replicas(self, concerns: Concerns) -> tuple[list[tuple[DesiredReplica, ReplicaStatus | None]], Any]:
        assert concerns(self.spec)
        order = ClaimOrder(id="o", over=Epoch(0)) if self.role is Role.OWNER else None
        want = DesiredReplica(spec=self.spec, role=self.role, order=order)
        status = ReplicaStatus(group=self.spec.id, role=self.role, epoch=Epoch(1))
        return ([(want, status)] if self.wanted else []), self.connections


def sealed(broker: Broker, version: int, **fields: Any) -> SealedConnection:
    whole = json.dumps(broker.connection(**fields).model_dump(mode="json"))
    return SealedConnection(name="b", kind="mqtt", version=version, sealed=seal(whole, KEY, PURPOSE_SENT))


@contextmanager
def running(kafka: str, directory: Path, broker: Broker) -> Iterator[tuple[Node, Callable[[], list[str]]]]:
    deployment = uuid4().hex[:8]
    topic = intake_topic(deployment, "in")
    ensure_topics(KafkaSettings(kafka), [Topic(topic)])
    node = Node(kafka, directory, deployment, broker)
    node.connectors.start()
    try:
        yield node, lambda: [each.value for each in peek(KafkaSettings(kafka), topic, 50)]
    finally:
        node.connectors.close(5)
        assert not [
            each for each in psutil.Process().children() if "pipeline_runtime.connectors" in each.cmdline()
        ]


def test_a_connector_follows_its_group_and_its_connection(kafka: str, broker: Broker, tmp_path: Path) -> None:
    with running(kafka, tmp_path, broker) as (node, values):
        wait_until(lambda: node.state == "connected", "a connection")
        broker.publish("a", b'{"v": 1}')
        wait_until(lambda: len(values()) == 1, "a record")

        node.role = Role.STANDBY  # another node owns now
        wait_until(lambda: not node.status.connectors, "the end of the connector")
        broker.publish("a", b'{"v": 2}')
        node.role = Role.OWNER
        wait_until(lambda: len(values()) == 2, "what the broker has kept")

        node.connections = (sealed(broker, 2, port=1),)
        wait_until(lambda: "Nobody listens at the MQTT broker 127.0.0.1, port 1" in node.why, "the words")
        node.connections = ()
        wait_until(lambda: 'There is no connection "b"' in node.why, "the words")
        node.connections = (sealed(broker, 3),)
        wait_until(lambda: node.state == "connected", "a new connection")
        assert not node.why
    assert [json.loads(value)["value"]["v"] for value in values()] == [1, 2]


@pytest.mark.full
def test_one_that_dies_is_started_again_and_what_was_left_on_the_disk_is_sent(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    with running(kafka, tmp_path, broker) as (node, values):
        wait_until(lambda: node.state == "connected", "a connection")
        [process] = [
            each for each in psutil.Process().children() if "pipeline_runtime.connectors" in each.cmdline()
        ]
        process.kill()
        wait_until(lambda: node.state != "connected", "its end to be noticed")
        seen: list[str] = []

        def again() -> bool:
            seen.append(node.state)
            return seen[-1] == "connected"

        wait_until(again, "a new one")
        assert "" not in seen  # it is shown meanwhile, too
        node.wanted = False
        wait_until(lambda: not node.status.connectors, "its end")
        left = Spool(tmp_path / "connectors" / node.spec.id / "in" / "spool", 1 << 20)
        left.append([Record(b"{}", 1)])
        left.close()
        wait_until(lambda: values() == ["{}"], "what was left")
