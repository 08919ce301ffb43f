"""An element that ends its node twice is held: it says at which record, and skips that when it is told to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from pipeline_runtime.model.ids import stream_topic
from tests.integration.pipelines.driving import API, START_S, CommittedReader, create_topic, deploy, element
from tests.integration.workers.greedy_operator import installed_in
from tests.running import PROJECT, RunningFogline
from tests.waiting import wait_until

# tests/lanes.py reads this line.
pytestmark = pytest.mark.full
PIPELINE = "held"
PATH = f"{API}/pipelines/{PIPELINE}"
BOTH = ("good", "bad")


def reading(topic: str, behind: dict[str, Any]) -> list[dict[str, Any]]:
    columns = [{"name": "k"}, {"name": "v", "type": "integer"}]
    source = {"id": topic, "type": "kafka-in", "params": {"topic": topic, "columns": columns}}
    return [source, {"inputs": {"in": topic}, **behind}]


DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": PIPELINE},
    "spec": {
        "elements": [
            *reading("good", {"id": "kept", "type": "filter", "params": {"condition": "v > 0"}}),
            *reading("bad", {"id": "greedy", "type": "greedy"}),
        ],
        "groups": [
            {"id": "innocent", "elements": ["good", "kept"]},
            {"id": "lethal", "elements": ["bad", "greedy"]},
        ],
    },
}


def send(fogline: RunningFogline, topic: str, *values: int) -> None:
    producer = KafkaProducer(bootstrap_servers=fogline.bootstrap)
    for value in values:
        producer.send(topic, b'{"k": "a", "v": %d}' % value).get(30)
    producer.close()


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_what_ends_its_node_twice_is_held_and_goes_on_behind_the_record(tmp_path: Path) -> None:
    path = os.pathsep.join([str(installed_in(tmp_path / "site")), str(PROJECT)])
    nodes = ("edge-a", "edge-b")
    # A node that is started again is not silent for so long: nothing is restored elsewhere meanwhile.
    with (
        RunningFogline(tmp_path / "data", nodes, PYTHONPATH=path, FOGLINE_SILENCE_S="60") as fogline,
        fogline.client() as client,
    ):
        for topic in BOTH:
            create_topic(fogline.bootstrap, topic)
            send(fogline, topic, 1)
        document = DOCUMENT | {"spec": {**DOCUMENT["spec"]}}
        document["spec"]["elements"] = [{**each, "node": "edge-a"} for each in DOCUMENT["spec"]["elements"]]
        deployment = deploy(client, document)
        readers = {id: CommittedReader(fogline.bootstrap, stream_topic(deployment, id)) for id in HEARD}

        def rows(id: str) -> list[int]:
            return [value["v"] for _, value in readers[id].poll()]

        wait_until(lambda: rows("kept") == rows("greedy") == [1], "the first rows", START_S)
        send(fogline, "bad", 2, 13, 3)

        way = wait_until(lambda: held(client), lambda: f"it to be held: {greedy(client)}", START_S)
        assert "ended Spark's Java process" in greedy(client)["error"]["message"]
        assert "bad, partition 0, offset" in greedy(client)["error"]["message"]
        send(fogline, "good", 2)
        wait_until(lambda: rows("kept") == [1, 2], "the innocent one to go on", START_S)
        assert {element(client, PIPELINE, id)["node"] for id in HEARD} == {"edge-a"}, "nothing has moved"
        assert client.get(f"{API}/handovers").raise_for_status().json() == []

        client.post(f"{PATH}/elements/greedy/go-on", json={"way": way["id"]}).raise_for_status()
        send(fogline, "bad", 4)
        wait_until(lambda: 4 in rows("greedy"), "it to go on behind the record", START_S)
        # The rows of its batch are left out with the record, and counted.
        found = rows("greedy")
        assert found == [row for row in (1, 2, 3, 4) if row in found]
        assert 5 - len(found) == greedy(client)["left_out_total"]
        for reader in readers.values():
            reader.close()


HEARD = ("kept", "greedy")


def greedy(client: httpx.Client) -> dict[str, Any]:
    return element(client, PIPELINE, "greedy")


def held(client: httpx.Client) -> dict[str, Any] | None:
    error = greedy(client)["error"]
    if error is None or error["code"] != "java-ended-twice":
        return None
    [way] = error["ways"]
    return dict(way)
