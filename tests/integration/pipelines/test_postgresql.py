"""A pipeline from one table of a database to another, while transactions are open, the source moves, and its
node dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.databases import PASSWORD, Database
from tests.integration.pipelines.driving import API, deploy
from tests.integration.pipelines.statistics import RECOVERY_S, arrive_through_a_move_and_a_kill
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]
WRITERS = 3


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as running:
        running.ask("CREATE TABLE made (id bigserial PRIMARY KEY, line text); CREATE TABLE taken (id bigint)")
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
                    "type": "postgresql-in",
                    "node": "edge-a",
                    "params": {
                        "connection": "plant-database",
                        "table": "made",
                        "rising": "id",
                        "every_ms": 200,
                        "columns": [{"name": "id", "type": "integer"}],
                    },
                },
                {
                    "id": "out",
                    "type": "postgresql-out",
                    "node": "edge-a",
                    "inputs": {"in": "in"},
                    "params": {"connection": "plant-database", "table": "taken"},
                },
            ]
        },
    }


class Writers:
    """Transactions that stay open beside each other and end in any order; each fourth is rolled back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(each,)) for each in range(WRITERS)]
        for each in self._threads:
            each.start()

    def finish(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def _run(self, writer: int) -> None:
        with self._database.client(autocommit=False) as client:
            for turn in range(1_000_000):
                for _ in range(1 + (turn + writer) % 3):
                    client.execute("INSERT INTO made (line) VALUES ('a')")
                    self._stop.wait(0.03 * (1 + writer))
                if turn % 4 == 3:
                    client.rollback()
                else:
                    client.commit()
                if self._stop.is_set():
                    return


def test_each_row_arrives_once_while_the_source_moves_and_its_node_is_killed(
    fogline: RunningFogline, client: httpx.Client, database: Database
) -> None:
    fields = database.connection().model_dump(exclude_none=True)
    made = client.post(
        f"{API}/connections", json={"name": "plant-database", "kind": "postgresql", "fields": fields}
    )
    assert made.status_code == 201, made.text
    deploy(client, document("tables"))

    def taken() -> list[int]:
        return [id for (id,) in database.ask("SELECT id FROM taken ORDER BY id")]

    writers = Writers(database)
    try:
        arrive_through_a_move_and_a_kill(fogline, client, "tables", "in", lambda: len(taken()), more=20)
    finally:
        writers.finish()
    expected = [id for (id,) in database.ask("SELECT id FROM made ORDER BY id")]
    wait_until(lambda: len(taken()) >= len(expected), "all rows", RECOVERY_S)
    assert taken() == expected
    for path in ("connections", "pipelines/tables", "pipelines/tables/export", "events"):
        assert PASSWORD not in client.get(f"{API}/{path}").text, path
