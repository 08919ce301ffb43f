"""A pipeline from a topic of another Kafka cluster to one there, while the sink moves and its node dies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from pipeline_runtime.connectors.kafka_session import probe
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.reading import committed_records
from tests.integration.pipelines.driving import API, deploy
from tests.integration.pipelines.statistics import RECOVERY_S, arrive_through_a_move_and_a_kill
from tests.kafka_clusters import PASSWORD, SecureKafka
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]
CONNECTION = "other-kafka"
GIVEN, TAKEN = "given", "taken"


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with SecureKafka(tmp_path_factory.mktemp("other")) as running:

        def knows_its_user() -> bool:
            try:
                probe(running.connection(), "")
            except ConnectorError:
                return False
            return True

        wait_until(knows_its_user, "the cluster to know its user")
        ensure_topics(running.open, [Topic(GIVEN), Topic(TAKEN)])
        yield running


def document(name: str) -> dict[str, Any]:
    reads = {"connection": CONNECTION, "topic": GIVEN, "columns": [{"name": "n", "type": "integer"}]}
    source = {"id": "in", "type": "other-kafka-in", "node": "edge-a", "params": reads}
    sink = {
        "id": "out",
        "type": "other-kafka-out",
        "node": "edge-a",
        "inputs": {"in": "in"},
        "params": {"connection": CONNECTION, "topic": TAKEN},
    }
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {"elements": [source, sink]},
    }


class Numbers:
    """Writes 0, 1, 2 and so on, a hundred a second, until `finish`. `sent` is how many there are."""

    def __init__(self, cluster: SecureKafka) -> None:
        self._producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            self._producer.send(GIVEN, b'{"n":%d}' % self.sent)
            self.sent += 1


def test_each_row_arrives_once_in_the_other_cluster_while_the_sink_moves_and_its_node_is_killed(
    fogline: RunningFogline, client: httpx.Client, cluster: SecureKafka
) -> None:
    fields = cluster.connection().model_dump(exclude_none=True)
    made = client.post(f"{API}/connections", json={"name": CONNECTION, "kind": "kafka", "fields": fields})
    assert made.status_code == 201, made.text
    deploy(client, document("clusters"))

    def taken() -> list[int]:
        return [json.loads(value)["n"] for _, value in committed_records(cluster.open, TAKEN)]

    numbers = Numbers(cluster)
    try:
        arrive_through_a_move_and_a_kill(fogline, client, "clusters", "out", lambda: len(taken()), more=100)
    finally:
        numbers.finish()
    wait_until(lambda: len(taken()) >= numbers.sent, "all rows", RECOVERY_S)
    assert taken() == list(range(numbers.sent))
    for path in ("connections", "pipelines/clusters", "pipelines/clusters/export", "events"):
        assert f'"{PASSWORD}"' not in client.get(f"{API}/{path}").text, path
