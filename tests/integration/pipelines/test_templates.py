"""What templates put out on real nodes, while their elements move at random and a node dies, is what their
oracles say."""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
from datetime import datetime
from typing import Any

import httpx
import psutil
import pytest
from kafka import KafkaConsumer

from pipeline_runtime.model.ids import stream_topic
from tests.handover.tail import Tail
from tests.integration.pipelines.driving import (
    API,
    LOOK_EVERY_S,
    START_S,
    deploy,
    element,
    ended_handover,
    order_handover,
)
from tests.integration.pipelines.statistics import node
from tests.running import RunningFogline
from tests.waiting import wait_until

Row = dict[str, Any]
# Template -> rows per second of its source, so that it lasts a minute.
RATES = {"power-recorder": 300, "additive-control": 300}
MOVES_BEFORE, MOVES_AFTER = 2, 1
ENDED_S = 300.0


@pytest.mark.integration
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RATES)
def test_a_template_puts_out_what_its_oracle_says_while_its_elements_move_and_a_node_dies(
    fogline: RunningFogline, client: httpx.Client, name: str
) -> None:
    document = template(client, name)
    run = Run(client, document, random.Random(name))
    deployment = deploy(client, document)
    # It reads on while something moves, and waits in between: so it has not ended when the node dies,
    # however long that takes.
    run.source("pause")
    for _ in range(MOVES_BEFORE):
        run.source("resume")
        run.move()
        run.source("pause")
    assert not element(client, name, run.source_id)["ended"]
    run.source("resume")
    run.kill_a_node(fogline)
    for _ in range(MOVES_AFTER):
        run.move()
    run.wait_until_ended()
    expected = importlib.import_module(f"tests.oracles.{name.replace('-', '_')}").expected()
    # What nobody reads but the sinks of its own group is no topic.
    there = [id for id in expected if stream_topic(deployment, id) in topics(fogline.bootstrap)]
    assert len(there) >= 3
    for id in there:
        assert_same(id, put_out(fogline.bootstrap, deployment, id), expected[id])


def template(client: httpx.Client, name: str) -> Row:
    """Its document, on no node in particular, with a source that does not take too long."""
    (found,) = [each for each in client.get(f"{API}/templates").json() if each["name"] == name]
    document: Row = found["document"]
    for each in document["spec"]["elements"]:
        each.pop("node", None)
        if each["type"] == "csv-replay":
            each["params"]["rate"] = RATES[name]
    return document


class Run:
    def __init__(self, client: httpx.Client, document: Row, chance: random.Random) -> None:
        self._client = client
        self._name = document["metadata"]["name"]
        self._chance = chance
        self._ids = [
            each["id"] for each in document["spec"]["elements"] if not each["type"].startswith("live-")
        ]
        self.source_id = self._ids[0]

    def source(self, action: str) -> None:
        path = f"{API}/pipelines/{self._name}/elements/{self.source_id}/{action}"
        answer = self._client.post(path)
        assert answer.is_success or element(self._client, self._name, self.source_id)["ended"], answer.text

    def move(self) -> None:
        """One of its elements, with its group, to the other node."""

        def ready() -> Row | None:
            found = element(self._client, self._name, self._chance.choice(self._ids))
            return found if found["actions"]["migrate"]["allowed"] else None

        chosen = wait_until(ready, "an element that may move", START_S, look_every_s=LOOK_EVERY_S)
        target = {"edge-a": "edge-b", "edge-b": "edge-a"}[chosen["node"]]
        ordered = order_handover(self._client, self._name, chosen["id"], "migrate", target)
        finished = ended_handover(self._client, ordered, f"{chosen['id']} to {target}")
        assert finished["outcome"] == "done", finished

    def kill_a_node(self, fogline: RunningFogline) -> None:
        """SIGKILL of its process; the supervisor starts it again. Over when it is ready."""
        name = self._chance.choice(["edge-a", "edge-b"])
        pid = fogline.pid(name)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(pid), f"{name} to be dead")
        wait_until(lambda: not node(self._client, name)["ready"], f"the end of {name} to be noticed", START_S)
        wait_until(lambda: node(self._client, name)["ready"], f"{name} to be ready again", START_S)

    def wait_until_ended(self) -> None:
        def over() -> bool:
            answer = self._client.get(f"{API}/pipelines/{self._name}/elements").raise_for_status()
            return all(each["ended"] for each in answer.json() if each["id"] in self._ids)

        wait_until(over, "all elements to end", ENDED_S, look_every_s=LOOK_EVERY_S)


def topics(bootstrap: str) -> set[str]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        return set(consumer.topics())
    finally:
        consumer.close()


def put_out(bootstrap: str, deployment: str, id: str) -> list[Row]:
    tail = Tail(bootstrap, stream_topic(deployment, id))
    try:
        return [{**json.loads(record.value), "_time": record.timestamp} for record in tail.records()]
    finally:
        tail.close()


def assert_same(id: str, found: list[Row], wanted: list[Row]) -> None:
    """Each row once, whatever their order, which is open between keys."""
    names = list(wanted[0])
    got, expected = (sorted(_comparable(row, names) for row in rows) for rows in (found, wanted))
    assert len(got) == len(expected), f"{id}: {len(got)} rows instead of {len(expected)}"
    assert got == expected, id


def _comparable(row: Row, names: list[str]) -> tuple[str, ...]:
    return tuple(_text(row[name], is_time=name == "_time") for name in names)


def _text(value: Any, is_time: bool) -> str:
    if isinstance(value, datetime):
        value, is_time = round(value.timestamp() * 1000), True
    if is_time:
        return f"{value:015d}"
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{float(value):.9g}"
    if isinstance(value, str) and value.endswith("Z") and value[:2] == "20":
        return _text(datetime.fromisoformat(value), True)
    return str(value)
