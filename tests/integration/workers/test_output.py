"""Downloading what a file sink wrote: the committed part of it, with the right token only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.service import chunk_service, serve
from pipeline_runtime.journal.records import Boundary, Claim, Commit, encode
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq, journal_topic
from workers.node.output import add_output_route, committed_output

pytestmark = pytest.mark.integration

KEY = "cluster key"
GROUP = "outputs.sink"


@pytest.fixture
def url(kafka: str, tmp_path: Path) -> Iterator[str]:
    settings = KafkaSettings(kafka)
    journal = journal_topic("outputs", "sink")
    ensure_topics(settings, [Topic(journal, "journal")])
    transactions = Transactions(settings, "fl.outputs.sink.1")
    transactions.initialise()
    commit = Commit(Epoch(1), Boundary(Seq(1), {}, 0), marks={"sink": {"length": 11, "rows": 1}})
    for record in (Claim(Epoch(1), "o", "a"), commit, Claim(Epoch(2), "p", "a")):
        transactions.commit([OutgoingRecord(journal, encode(record))])
    transactions.close()
    directory = tmp_path / "replicas" / GROUP / "g1" / "elements" / "sink"
    directory.mkdir(parents=True)
    (directory / "out.csv").write_bytes(b"a,b\r\n1,2\r\n\nnot committed")
    with StateDatabase(tmp_path / "state") as database:
        app = chunk_service(database, KEY)
        add_output_route(app, KEY, lambda g, e: committed_output(tmp_path, settings, g, e))
        server = serve(app, "127.0.0.1", 0)
        yield server.url
        server.close()


def get(url: str, group: str, element: str, scope: str, key: str = KEY) -> httpx.Response:
    headers = {"Authorization": f"Bearer {access.mint(key, scope, time.time() + 60)}"}
    return httpx.get(f"{url}/groups/{group}/output/{element}", headers=headers)


def test_only_what_was_committed_is_handed_out_and_only_to_those_who_may(url: str) -> None:
    answer = get(url, GROUP, "sink", access.group_read(GROUP))
    assert (answer.status_code, answer.content) == (200, b"a,b\r\n1,2\r\n\n")
    assert answer.headers["content-type"].startswith("text/csv")
    assert get(url, GROUP, "sink", access.group_read("another.group")).status_code == 403
    assert get(url, GROUP, "sink", access.group_read(GROUP), key="another key").status_code == 403
    assert httpx.get(f"{url}/groups/{GROUP}/output/sink").status_code == 403
    assert get(url, GROUP, "nothing", access.group_read(GROUP)).status_code == 404
    assert get(url, "d.unknown", "sink", access.group_read("d.unknown")).status_code == 404
