"""A pipeline is undeployed while rows wait for a database outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.databases import Database
from tests.integration.pipelines.driving import API, START_S, deploy, deploy_draft
from tests.running import RunningFogline
from tests.waiting import wait_until

# An undeployment gives a database 30 s to come back, which a slow machine may need for its start alone.
pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]
NAME = "into-a-table"


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as running:
        running.ask("CREATE TABLE taken (value double precision)")
        yield running


def document() -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": NAME},
        "spec": {
            "elements": [
                {"id": "numbers", "type": "generator", "node": "edge-a", "params": {"rate": 20}},
                {
                    "id": "values",
                    "type": "select",
                    "node": "edge-a",
                    "inputs": {"in": "numbers"},
                    "params": {"columns": [{"column": "value"}]},
                },
                {
                    "id": "out",
                    "type": "postgresql-out",
                    "title": "Table of the plant",
                    "node": "edge-b",
                    "inputs": {"in": "values"},
                    "params": {"connection": "undeployed-database", "table": "taken"},
                },
            ]
        },
    }


def test_what_was_put_out_is_delivered_or_said(
    fogline: RunningFogline, client: httpx.Client, database: Database
) -> None:
    fields = database.connection().model_dump(exclude_none=True)
    made = client.post(
        f"{API}/connections", json={"name": "undeployed-database", "kind": "postgresql", "fields": fields}
    )
    assert made.status_code == 201, made.text

    def taken() -> int:
        [(count,)] = database.ask("SELECT count(*) FROM taken")
        return int(count)

    def waiting() -> dict[str, Any]:
        plan = client.post(f"{API}/pipelines/{NAME}/undeploy", json={"dry_run": True}).json()
        return dict((plan["undelivered"] or [{"rows": 0, "why": ""}])[0])

    def ordered(**body: bool) -> str:
        answer = client.post(f"{API}/pipelines/{NAME}/undeploy", json=body)
        assert answer.status_code == 202, answer.text
        return f"{API}/operations/{answer.json()['id']}"

    def ended(path: str) -> dict[str, Any]:
        wait_until(lambda: client.get(path).json()["status"] == "done", "the undeployment", START_S)
        return dict(client.get(path).json())

    deploy(client, document())
    wait_until(lambda: taken() > 20, "the first rows", START_S)
    before = taken()
    database.kill()
    wait_until(lambda: waiting()["rows"] > 50, "rows that wait", START_S)
    path = ordered()
    wait_until(
        lambda: "Table of the plant to deliver" in client.get(path).json()["waits_for"], "words", START_S
    )
    [left] = client.get(path).json()["undelivered"]
    assert (left["element"], left["title"], left["rows"] > 50) == ("out", "Table of the plant", True)
    database.start()
    operation = ended(path)
    assert operation["undelivered"] == []
    assert "Not delivered" not in operation["message"]
    assert [step["name"] for step in operation["steps"]] == ["retire", "deliver", "stop", "delete topics"]
    assert taken() > before  # Kafka is told once a second, so some of the rows that waited were there already

    database.kill()
    deploy_draft(client, NAME)
    wait_until(lambda: waiting()["rows"] > 1 and waiting()["why"], "rows that wait, with the reason", START_S)
    operation = ended(ordered(hurry=True))
    [lost] = operation["undelivered"]
    assert lost["rows"] > 0
    assert "of Table of the plant" in operation["message"]
    said = f"Not delivered: {lost['rows']:,} rows"
    assert said in operation["message"]
    told = [each for each in client.get(f"{API}/events").json() if said in each["message"]]
    assert [each["severity"] for each in told] == ["warning"]
