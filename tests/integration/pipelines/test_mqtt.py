"""A pipeline from one broker's topics to others, while its elements move and its node dies."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.brokers import Broker
from tests.integration.pipelines.driving import API, deploy, element, hand_over
from tests.integration.pipelines.statistics import RECOVERY_S, kill_process
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.full]
SECRET = "right"
ANN = {"user": "ann", "password": SECRET}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path, user="ann") as running:
        yield running


def document(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "elements": [
                {
                    "id": "in",
                    "type": "mqtt-in",
                    "node": "edge-a",
                    "params": {
                        "connection": "mqtt-plant",
                        "topics": ["plant/+/t"],
                        "columns": [{"name": "line", "level": 2}, {"name": "n", "type": "integer"}],
                    },
                },
                {
                    "id": "even",
                    "type": "filter",
                    "node": "edge-a",
                    "inputs": {"in": "in"},
                    "params": {"condition": "n % 2 = 0"},
                },
                {
                    "id": "out",
                    "type": "mqtt-out",
                    "node": "edge-a",
                    "inputs": {"in": "even"},
                    "params": {"connection": "mqtt-plant", "topic": "even/{line}", "id_field": "id"},
                },
            ]
        },
    }


class Load:
    """Publishes numbers until `finish`, and counts what comes out."""

    def __init__(self, broker: Broker) -> None:
        self.sent = 0
        self.got: Counter[int] = Counter()
        self._stop = threading.Event()
        self._out = broker.client(self._take, "even/#", **ANN)
        self._client = broker.client(**ANN)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> int:
        """Returns how many were sent."""
        self._stop.set()
        self._thread.join()
        return self.sent

    def close(self) -> None:
        for client in (self._client, self._out):
            client.disconnect()
            client.loop_stop()

    def _take(self, _: str, payload: bytes) -> None:
        self.got[json.loads(payload)["n"]] += 1

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            payload = json.dumps({"n": self.sent}).encode()
            self._client.publish("plant/a/t", payload, 1).wait_for_publish(30)
            self.sent += 1


def test_nothing_is_lost_while_the_elements_move_and_their_node_is_killed(
    fogline: RunningFogline, client: httpx.Client, broker: Broker
) -> None:
    fields = {"host": "127.0.0.1", "port": broker.port, **ANN}
    made = client.post(f"{API}/connections", json={"name": "mqtt-plant", "kind": "mqtt", "fields": fields})
    assert made.status_code == 201, made.text
    tested = client.post(f"{API}/connections/mqtt-plant/test", json={"node": "edge-a"})
    assert tested.json()["works"], tested.text
    deploy(client, document("mqtt"))

    def stands(id: str, status: str, on: str) -> bool:
        found = element(client, "mqtt", id)
        return found["status"] == status and found["node"] == on

    for id in ("in", "even", "out"):
        wait_until(lambda id=id: stands(id, "running", "edge-a"), f"{id} to run", RECOVERY_S)
    load = Load(broker)
    try:
        wait_until(lambda: len(load.got) > 20, "the first messages", RECOVERY_S)
        for id in ("in", "out"):
            assert hand_over(client, "mqtt", id, "migrate", "edge-b")["outcome"] == "done"
            before = len(load.got)
            wait_until(
                lambda b=before: len(load.got) > b + 20, f"messages after the move of {id}", RECOVERY_S
            )
        kill_process(fogline, "edge-b")
        before = len(load.got)
        wait_until(lambda: len(load.got) > before + 20, "messages after the kill", RECOVERY_S)
        client.put(f"{API}/connections/mqtt-plant", json={"fields": {**fields, "password": "wrong"}})
        wait_until(
            lambda: "does not let the user ann in" in json.dumps(element(client, "mqtt", "in")["error"]),
            "the wrong password to be told",
            RECOVERY_S,
        )
        client.put(f"{API}/connections/mqtt-plant", json={"fields": fields})
        sent = load.finish()
        expected = set(range(0, sent, 2))
        wait_until(lambda: expected <= set(load.got), "all messages", RECOVERY_S)
    finally:
        load.finish()
        load.close()
    repeats = sum(load.got.values()) - len(load.got)
    print(f"{sent} messages in, {len(load.got)} out, {repeats} repeats")
    assert set(load.got) == expected
    _assert_no_secret(fogline, client)


def _assert_no_secret(fogline: RunningFogline, client: httpx.Client) -> None:
    """The password stands in no answer, export, log or file but sealed."""
    for path in ("connections", "pipelines/mqtt", "pipelines/mqtt/export", "audit", "events", "overview"):
        assert f'"{SECRET}"' not in client.get(f"{API}/{path}").text, path
