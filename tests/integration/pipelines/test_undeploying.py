"""A pipeline is undeployed while rows wait for a broker outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.brokers import Broker
from tests.integration.pipelines.driving import API, START_S, deploy, deploy_draft
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
NAME = "to-a-broker"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


def document() -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": NAME},
        "spec": {
            "elements": [
                {"id": "numbers", "type": "generator", "node": "edge-a", "params": {"rate": 50}},
                {
                    "id": "out",
                    "type": "mqtt-out",
                    "title": "To the plant",
                    "node": "edge-b",
                    "inputs": {"in": "numbers"},
                    "params": {"connection": "plant", "topic": "numbers", "id_field": "id"},
                },
            ]
        },
    }


def test_what_was_put_out_is_delivered_or_said(
    fogline: RunningFogline, client: httpx.Client, broker: Broker
) -> None:
    fields = {"host": "127.0.0.1", "port": broker.port}
    made = client.post(f"{API}/connections", json={"name": "plant", "kind": "mqtt", "fields": fields})
    assert made.status_code == 201, made.text
    got = set[str]()
    broker.client(lambda _, payload: got.add(json.loads(payload)["id"]), "numbers")

    def waiting() -> int:
        plan = client.post(f"{API}/pipelines/{NAME}/undeploy", json={"dry_run": True}).json()
        return sum(each["rows"] for each in plan["undelivered"] or ())

    def ordered(hurry: bool = False) -> str:
        answer = client.post(f"{API}/pipelines/{NAME}/undeploy", json={"hurry": hurry})
        assert answer.status_code == 202, answer.text
        return f"{API}/operations/{answer.json()['id']}"

    def operation(path: str, **want: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            now: dict[str, Any] = client.get(path).json()
            return now if all(now[key] == value for key, value in want.items()) else None

        result: dict[str, Any] = wait_until(found, f"the undeployment: {want}", START_S)
        return result

    deploy(client, document())
    wait_until(lambda: len(got) > 20, "the first messages", START_S)
    broker.hang()
    wait_until(lambda: waiting() > 100, "rows that wait", START_S)
    path = ordered()
    delivering = operation(path, phase="DELIVER")
    wait_until(lambda: "To the plant to deliver" in client.get(path).json()["waits_for"], "words", START_S)
    [left] = client.get(path).json()["undelivered"]
    assert (left["element"], left["title"], left["rows"] > 100) == ("out", "To the plant", True)
    before = len(got)
    broker.go_on()
    ended = operation(path, status="done")
    wait_until(lambda: len(got) >= before + left["rows"], "the rows that waited", START_S)
    assert ended["undelivered"] == []
    assert "Not delivered" not in ended["message"]
    assert [step["name"] for step in delivering["steps"]] == ["retire", "deliver", "stop", "delete topics"]

    broker.stop()
    deploy_draft(client, NAME)
    wait_until(lambda: waiting() > 0, "rows that wait", START_S)
    path = ordered(hurry=True)
    ended = operation(path, status="done")
    [lost] = ended["undelivered"]
    assert lost["rows"] > 0
    said = f"Not delivered: {lost['rows']:,} rows"
    assert said in ended["message"]
    told = [each for each in client.get(f"{API}/events").json() if said in each["message"]]
    assert [each["severity"] for each in told] == ["warning"]
