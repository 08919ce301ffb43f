"""A pipeline is undeployed while rows wait for a system outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import committed_values
from pipeline_runtime.model.ids import stream_topic
from tests.databases import Database
from tests.integration.pipelines.driving import API, START_S, deploy, deploy_draft
from tests.plants import Plant, a_plant
from tests.ports import free_ports
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
ELEMENTS = ("numbers", "values", "out")


@pytest.fixture
def plant() -> Iterator[Plant]:
    with a_plant() as running:
        yield running


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as running:
        running.ask("CREATE TABLE taken (n bigint)")
        yield running


def document(name: str, sink: str, **params: str) -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "elements": [
                {"id": "numbers", "type": "generator", "node": "edge-a", "params": {"rate": 20}},
                {
                    "id": "values",
                    "type": "select",
                    "node": "edge-a",
                    "inputs": {"in": "numbers"},
                    "params": {"columns": [{"column": "n"}]},
                },
                {
                    "id": "out",
                    "type": sink,
                    "title": "System of the plant",
                    "node": "edge-b",
                    "inputs": {"in": "values"},
                    "params": params,
                },
            ]
        },
    }


class Undeploying:
    """Undeploys one pipeline over REST."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        self._client, self._path = client, f"{API}/pipelines/{name}/undeploy"

    def waiting(self) -> dict[str, Any]:
        """The rows that wait at its deliverer."""
        plan = self._client.post(self._path, json={"dry_run": True}).json()
        return dict((plan["undelivered"] or [{"rows": 0, "why": ""}])[0])

    def order(self) -> str:
        answer = self._client.post(self._path)
        assert answer.status_code == 202, answer.text
        return f"{API}/operations/{answer.json()['id']}"

    def waits_for(self, path: str, what: str) -> None:
        wait_until(lambda: what in self._client.get(path).json()["waits_for"], what, START_S)

    def delivers(self, path: str) -> dict[str, Any]:
        """Returns when its groups have ended and it waits for the deliverer."""

        def asked() -> dict[str, Any] | None:
            found: dict[str, Any] = self._client.get(path).json()
            return found if "System of the plant to deliver" in found["waits_for"] else None

        found: dict[str, Any] = wait_until(asked, "the wait for deliveries", START_S)
        return found

    def ended(self, path: str) -> dict[str, Any]:
        wait_until(lambda: self._client.get(path).json()["status"] == "done", "the undeployment", START_S)
        return dict(self._client.get(path).json())


def connect(client: httpx.Client, name: str, kind: str, fields: dict[str, Any]) -> None:
    made = client.post(f"{API}/connections", json={"name": name, "kind": kind, "fields": fields})
    assert made.status_code == 201, made.text


def put_out(fogline: RunningFogline, deployment: str, element: str) -> list[int]:
    values = committed_values(KafkaSettings(fogline.bootstrap), stream_topic(deployment, element))
    return [json.loads(value)["n"] for value in values]


def test_each_row_that_was_put_out_reaches_the_system(
    fogline: RunningFogline, client: httpx.Client, plant: Plant
) -> None:
    """Also rows that waited between two elements."""
    connect(client, "undeployed-server", "http", plant.connection)
    deployment = deploy(client, document("to-a-server", "http-out", connection="undeployed-server"))
    undeploying = Undeploying(client, "to-a-server")
    wait_until(lambda: plant.taken, "the first rows", START_S)
    plant.shut = True
    wait_until(lambda: undeploying.waiting()["rows"] > 20, "rows that wait", START_S)
    path = undeploying.order()
    undeploying.delivers(path)
    streams = [put_out(fogline, deployment, element) for element in ELEMENTS]
    assert streams == [list(range(len(streams[0])))] * 3
    plant.shut = False
    operation = undeploying.ended(path)
    assert list(dict.fromkeys(plant.taken)) == streams[-1]
    assert operation["undelivered"] == []
    assert operation["message"] == "Undeployed. Checkpoints are kept in the central store for a while."
    assert [step["name"] for step in operation["steps"]] == ["retire", "deliver", "stop", "delete topics"]


@pytest.mark.full
def test_what_was_put_out_is_delivered_once_or_said(
    fogline: RunningFogline, client: httpx.Client, database: Database
) -> None:
    """A database that keeps the position takes each row once, also if it comes back late."""
    connect(client, "undeployed-database", "postgresql", database.connection().model_dump(exclude_none=True))
    params = {"connection": "undeployed-database", "table": "taken"}
    deployment = deploy(client, document("into-a-table", "postgresql-out", **params))
    undeploying = Undeploying(client, "into-a-table")

    def taken() -> list[int]:
        return [int(n) for (n,) in database.ask("SELECT n FROM taken ORDER BY n")]

    wait_until(lambda: len(taken()) > 20, "the first rows", START_S)
    database.kill()
    wait_until(lambda: undeploying.waiting()["rows"] > 50, "rows that wait", START_S)
    path = undeploying.order()
    [left] = undeploying.delivers(path)["undelivered"]
    assert (left["element"], left["title"], left["rows"] > 50) == ("out", "System of the plant", True)
    rows = put_out(fogline, deployment, "out")
    database.start()
    operation = undeploying.ended(path)
    assert operation["undelivered"] == []
    assert "Not delivered" not in operation["message"]
    assert taken() == rows == list(range(len(rows)))

    database.kill()
    deploy_draft(client, "into-a-table")
    wait_until(
        lambda: undeploying.waiting()["rows"] > 1 and undeploying.waiting()["why"], "the reason", START_S
    )
    path = undeploying.order()
    undeploying.delivers(path)
    assert client.post(f"{path}/hurry").status_code == 202
    operation = undeploying.ended(path)
    [lost] = operation["undelivered"]
    assert lost["rows"] > 1
    said = f"Not delivered: {lost['rows']:,} rows of System of the plant ("
    assert said in operation["message"]
    assert "tried again" not in operation["message"]
    told = [each for each in client.get(f"{API}/events").json() if said in each["message"]]
    assert [each["severity"] for each in told] == ["warning"]


TOKEN = "a-secret-of-the-sender"


def webhook(port: int) -> dict[str, Any]:
    """Rows that are sent to a port go to a system outside."""
    takes = {
        "connection": "undeployed-webhook",
        "port": port,
        "path": "/rows",
        "columns": [{"name": "n", "type": "integer"}],
    }
    elements = [
        {"id": "taken", "type": "http-in", "title": "Webhook", "node": "edge-a", "params": takes},
        {
            "id": "out",
            "type": "http-out",
            "title": "System of the plant",
            "node": "edge-b",
            "inputs": {"in": "taken"},
            "params": {"connection": "undeployed-plant"},
        },
    ]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "from-a-disk"},
        "spec": {"elements": elements},
    }


def is_taken(port: int, numbers: range) -> bool:
    """Sends rows with these numbers. Returns whether they are safe."""
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{port}/rows",
            json=[{"n": n} for n in numbers],
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=30,
        )
    except httpx.TransportError:  # nobody listens yet
        return False
    return answer.status_code == 202


@pytest.mark.full
def test_rows_on_a_nodes_disk_are_counted_and_reach_the_system(
    fogline: RunningFogline, client: httpx.Client, plant: Plant
) -> None:
    """Kafka was away when the ingester took them, and comes back during the undeployment."""
    [port] = free_ports(1)
    connect(client, "undeployed-plant", "http", plant.connection)
    connect(client, "undeployed-webhook", "webhook", {"token": TOKEN})
    deploy(client, webhook(port))
    undeploying = Undeploying(client, "from-a-disk")
    wait_until(lambda: is_taken(port, range(10)), "the first rows to be taken", START_S)
    wait_until(lambda: set(plant.taken) == set(range(10)), "the first rows", START_S)
    wait_until(lambda: not undeploying.waiting()["rows"], "their delivery to be noted", START_S)
    plant.shut = True

    def on_the_disk() -> list[Path]:
        return list(fogline.data.glob("nodes/edge-a/connectors/*/taken/spool/*.spool"))

    assert not on_the_disk()
    with fogline.kept_down("kafka"):
        wait_until(lambda: is_taken(port, range(10, 60)), "the rows to be taken without Kafka", START_S)
        assert on_the_disk()
        path = undeploying.order()
        undeploying.waits_for(path, "Webhook on edge-a to take in nothing more")
    [left] = undeploying.delivers(path)["undelivered"]
    assert (left["element"], left["rows"]) == ("out", 50)
    assert not on_the_disk()
    plant.shut = False
    operation = undeploying.ended(path)
    assert operation["undelivered"] == []
    assert plant.taken == list(range(60))
