"""A broker that is silent for a while, or dies, loses and repeats nothing; the owner comes back by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import Role
from pipeline_runtime.replica.host import ReplicaHost
from tests.integration.runtime.documents import Stream, by_key, events, file, lines, out, running_sums, sums
from tests.integration.runtime.engine import (
    Deployed,
    Node,
    create_topic,
    end_clients,
    read_all,
    values,
    wait_for_status,
)
from tests.ports import free_ports
from tests.waiting import wait_until
from workers.supervisor.services import Kafka

RATE = 100
OUTAGE_ROWS = 12 * RATE

pytestmark = pytest.mark.integration


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Kafka]:
    """A Kafka of this test's own, to be treated badly."""
    service = Kafka(tmp_path / "broker", *free_ports(2))
    with service:
        yield service
        end_clients()


@pytest.fixture
def its_node(broker: Kafka, host: ReplicaHost, tmp_path: Path) -> Iterator[Node]:
    """It shares the session of `host`."""
    own = ReplicaHost(
        "a", tmp_path / "host", KafkaSettings(broker.bootstrap), lambda: None, lambda _: tmp_path
    )
    own.start()
    node = Node(own, tmp_path / "a", {})
    yield node
    node.stop_all()
    own.broker.close()
    own.gate.close()


def processes(broker: Kafka) -> list[psutil.Process]:
    assert broker.pid is not None
    root = psutil.Process(broker.pid)
    return [root, *root.children(recursive=True)]


def test_a_broker_that_is_away_loses_and_repeats_nothing(broker: Kafka, its_node: Node) -> None:
    kafka = broker.bootstrap
    source, target = create_topic(kafka), create_topic(kafka)
    deployed = Deployed(
        kafka, [events(source), sums(), file(), out(target)], {"all": ["events", "sums", "file", "out"]}
    )
    spec = deployed.specs["all"]
    stream = Stream(kafka, source, rate=RATE)
    stream.start()
    replica = its_node.own(spec)
    wait_for_status(replica, lambda status: status.seq >= 5, "to reach seq 5")

    # Silent for longer than a commit is waited for: an owner that was committing is in doubt then.
    frozen = processes(broker)
    for process in frozen:
        process.suspend()
    try:
        sent_then = len(stream.rows) + OUTAGE_ROWS
        wait_until(lambda: len(stream.rows) >= sent_then, "the outage to end")
        said = wait_for_status(replica, lambda now: now.stalled is not None, "to say what it waits for")
        assert said.stalled is not None
        assert "Kafka, which does not answer" in said.stalled.why
    finally:
        for process in reversed(frozen):
            process.resume()
    seq = replica.status().seq
    wait_for_status(replica, lambda now: now.role is Role.OWNER and now.seq >= seq + 3, "to go on")
    wait_for_status(replica, lambda now: now.stalled is None, "to say that it goes on")

    # Killed, and started again over its data.
    for process in reversed(processes(broker)):
        process.kill()
    broker.stop()
    broker.start()
    seq = replica.status().seq
    wait_for_status(replica, lambda now: now.role is Role.OWNER and now.seq >= seq + 3, "to go on")
    stream.finish()

    # What the topic has is what was sent: a producer without transactions may repeat itself.
    sent = [json.loads(record.value) for record in read_all(kafka, source)]
    expected = running_sums(sent)
    count = sum(len(made) for made in expected.values())
    wait_until(lambda: len(values(kafka, target)) >= count, "all rows")
    assert by_key(values(kafka, target)) == expected
    path = its_node.replica_directory(spec) / "elements" / "file" / "out.csv"
    assert by_key(lines(path)) == expected
    deployed.assert_journal_lawful("all")
    assert replica.status().error is None
