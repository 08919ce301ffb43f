"""A pipeline that is an edge node of Sparkplug B, as a host sees it beside a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import committed_values
from pipeline_runtime.model.ids import stream_topic
from tests.brokers import Broker
from tests.integration.pipelines.driving import API, deploy, undeploy
from tests.integration.pipelines.statistics import RECOVERY_S, arrive_through_a_move_and_a_kill
from tests.running import RunningFogline
from tests.sparkplug_hosts import Host
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
CONNECTION = "sparkplug-plant"
METRIC = "Line/Count"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


@pytest.fixture
def host(broker: Broker) -> Iterator[Host]:
    reads = Host(broker, "plant", "counter", METRIC)
    yield reads
    reads.close()


@pytest.fixture(autouse=True)
def _connected(client: httpx.Client, broker: Broker) -> None:
    client.delete(f"{API}/connections/{CONNECTION}")  # that of the test before
    fields = {"host": "127.0.0.1", "port": broker.port}
    made = client.post(f"{API}/connections", json={"name": CONNECTION, "kind": "mqtt", "fields": fields})
    assert made.status_code == 201, made.text


def document(name: str, rate: float, rows: int = 0) -> dict[str, Any]:
    """The rows have the numbers 0, 1, 2 and so on."""
    numbers = {"id": "numbers", "type": "generator", "node": "edge-a", "params": {"rate": rate, "rows": rows}}
    sends = {"connection": CONNECTION, "group": "plant", "node": "counter"}
    out = {
        "id": "out",
        "type": "sparkplug-out",
        "node": "edge-a",
        "inputs": {"in": "numbers"},
        "params": {**sends, "metrics": [{"column": "n", "metric": METRIC}]},
    }
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {"elements": [numbers, out]},
    }


def test_a_host_sees_a_birth_then_each_row_and_at_the_end_a_death(client: httpx.Client, host: Host) -> None:
    deploy(client, document("edge-node", rate=100, rows=50))
    wait_until(lambda: len(host.values) == 50, lambda: f"all rows of {host.values}", RECOVERY_S)
    assert set(host.values) == set(range(50))
    undeploy(client, "edge-node")
    wait_until(lambda: not host.is_online, "the death", RECOVERY_S)
    assert host.faults == []


@pytest.mark.full
def test_a_host_sees_one_edge_node_and_each_row_while_the_element_moves_and_its_node_is_killed(
    fogline: RunningFogline, client: httpx.Client, host: Host
) -> None:
    deployment = deploy(client, document("moved-edge-node", rate=50))
    arrive_through_a_move_and_a_kill(
        fogline, client, "moved-edge-node", "out", lambda: len(host.values), more=100
    )
    put_out = list(committed_values(KafkaSettings(fogline.bootstrap), stream_topic(deployment, "out")))
    wait_until(
        lambda: len(host.values) >= len(put_out),
        lambda: f"{len(put_out)} rows, of which {len(host.values)} came",
        RECOVERY_S,
    )
    undeploy(client, "moved-edge-node")
    wait_until(lambda: not host.is_online, "the death at the end", RECOVERY_S)
    repeats = host.values.total() - len(host.values)
    print(f"{len(host.values)} rows came, {repeats} repeats, in the lives {host.lives}")
    # What was put out before its end came as well: the undeployment waits for it.
    assert sorted(host.values) == list(range(len(host.values)))
    assert host.faults == []
    assert len(host.lives) >= 3  # before the move, after it, and after the kill
    assert host.deaths == len(host.lives)
