"""Tests that clients reconnect with growing pauses if a tunnel accepts connections for a dead broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from tests.waiting import wait_until


class Tunnel:
    """Takes each connection, and closes it when the broker's end does not answer, which is always."""

    def __init__(self) -> None:
        self.connections = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def tunnel() -> Iterator[Tunnel]:
    tunnel = Tunnel()
    yield tunnel
    tunnel.close()


@pytest.mark.integration
def test_connections_that_are_closed_at_once_are_tried_with_growing_pauses(
    kafka: str, tunnel: Tunnel
) -> None:
    topic = TopicPartition(f"connections-{uuid4().hex[:8]}", 0)
    ensure_topics(KafkaSettings(kafka), [Topic(topic.topic)])
    consumer = open_consumer(KafkaSettings(kafka))
    consumer.assign([topic])
    consumer.seek_to_beginning(topic)
    consumer.poll(100)
    manager = consumer._client._manager
    [broker] = manager.cluster.brokers()
    # As if the broker had moved behind the tunnel, and died.
    broker.host, broker.port = "127.0.0.1", tunnel.port
    for connection in list(manager._conns.values()):
        manager._net.call_soon(connection.close)
    connections = failures = 0

    def four_have_failed() -> bool:
        nonlocal connections, failures
        consumer.poll(20)
        # In this order: meanwhile another may be made, and fail.
        connections = tunnel.connections
        failures, _, _ = manager._backoff.get(broker.node_id, (0, 0, 0))
        return bool(failures >= 4)

    wait_until(four_have_failed, lambda: f"four failures: {connections} connections, {failures} counted")
    # Each of them was followed by a pause: there were no more.
    assert connections <= failures + 1
    consumer.close()
