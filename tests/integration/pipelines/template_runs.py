"""One of the templates on real nodes: deployed, moved, and held against its oracle."""

from __future__ import annotations

import importlib
import json
import random
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from kafka import KafkaConsumer

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.ids import stream_topic
from tests.handover.tail import Tail
from tests.integration.pipelines.driving import API, LOOK_EVERY_S, START_S, deploy, element, hand_over
from tests.waiting import wait_until

Row = dict[str, Any]
ENDED_S = 600.0


def template(client: httpx.Client, name: str, rate: float) -> Row:
    """Its document, on no node in particular, whose source plays its recording once, at `rate` rows/s."""
    document: Row = client.get(f"{API}/templates/{name}").raise_for_status().json()["document"]
    for each in document["spec"]["elements"]:
        each.pop("node", None)
        if each["type"] == "csv-replay":
            each["params"].update(rate=rate, loops=1, restamp=False)
    return document


class Run:
    """One run of a template."""

    def __init__(self, client: httpx.Client, document: Row, chance: random.Random) -> None:
        self._client = client
        self._document = document
        self.name = document["metadata"]["name"]
        self._chance = chance
        self._ids = [
            each["id"] for each in document["spec"]["elements"] if not each["type"].startswith("live-")
        ]
        self.source_id = self._ids[0]
        self._deployment = ""

    def deploy(self) -> None:
        self._deployment = deploy(self._client, self._document)

    def source(self, action: str) -> None:
        path = f"{API}/pipelines/{self.name}/elements/{self.source_id}/{action}"
        answer = self._client.post(path)
        assert answer.is_success or element(self._client, self.name, self.source_id)["ended"], answer.text

    def move(self) -> None:
        """One of its elements, with its group, to the other node."""

        def ready() -> Row | None:
            found = element(self._client, self.name, self._chance.choice(self._ids))
            return found if found["actions"]["migrate"]["allowed"] else None

        chosen = wait_until(ready, "an element that may move", START_S, look_every_s=LOOK_EVERY_S)
        target = {"edge-a": "edge-b", "edge-b": "edge-a"}[chosen["node"]]
        finished = hand_over(self._client, self.name, chosen["id"], "migrate", target)
        assert finished["outcome"] == "done", finished

    def at_work(self) -> list[Row]:
        """The elements that have not ended."""
        answer = self._client.get(f"{API}/pipelines/{self.name}/elements").raise_for_status()
        return [each for each in answer.json() if each["id"] in self._ids and not each["ended"]]

    def wait_until_ended(self) -> None:
        wait_until(
            lambda: not self.at_work(),
            lambda: f"the end of {self.at_work()} of {self.name}",
            ENDED_S,
            look_every_s=LOOK_EVERY_S,
        )

    def compare(self, bootstrap: str) -> None:
        expected = importlib.import_module(f"tests.oracles.{self.name.replace('-', '_')}").expected()
        # What nobody reads but the sinks of its own group is no topic.
        known = topics(bootstrap)
        there = [id for id in expected if stream_topic(self._deployment, id) in known]
        assert there, f"{self.name}: none of {list(expected)} can be read"
        for id in there:
            assert_same(f"{self.name}.{id}", put_out(bootstrap, self._deployment, id), expected[id])
            self._trace_newest(id, known)

    def _trace_newest(self, id: str, known: set[str]) -> None:
        """From its newest row to the readings that it was made from, as far as there are topics that hold
        them."""
        path = f"{API}/pipelines/{self.name}/streams/{id}"
        [newest] = self._client.get(f"{path}/peek?limit=1").raise_for_status().json()["records"]
        place = {"partition": newest["partition"], "offset": newest["offset"]}
        trace = self._client.get(f"{path}/trace", params=place).raise_for_status().json()
        assert trace["record"]["value"] == newest["value"]
        assert self.source_id in [end["element"] for end in trace["ends"]], trace["ends"]
        streams = [step["stream"] for step in trace["steps"]]
        assert f"{self.source_id}.out" in streams, f"{self.name}.{id}: the trace ends before the readings"
        for step in trace["steps"]:
            where = f"{self.name}.{id}: {step['stream']}"
            is_held = stream_topic(self._deployment, *parse_reference(step["stream"])) in known
            assert (step["kept"], step["count"] > 0) == (is_held, is_held), f"{where} behind {newest}"
            # An element that waits for late rows shows those, too, with which it told the row.
            assert not is_held or min(record["at"] for record in step["records"]) <= newest["at"], where


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
    got, expected = (
        sorted((_plain(row, names) for row in rows), key=_exact_first) for rows in (found, wanted)
    )
    assert len(got) == len(expected), f"{id}: {len(got)} rows instead of {len(expected)}"
    for mine, theirs in zip(got, expected, strict=True):
        near = [pytest.approx(value, rel=1e-9) if isinstance(value, float) else value for value in theirs]
        assert mine == near, id


def _plain(row: Row, names: list[str]) -> list[Any]:
    return [_value(_instant(row[name]) if name == "_time" else row[name]) for name in names]


def _instant(time: Any) -> Any:
    """A record's timestamp is in ms."""
    return time if isinstance(time, datetime) else datetime.fromtimestamp(time / 1000, UTC)


def _value(value: Any) -> Any:
    """Times as texts, and all numbers as floats: how a record writes one is open."""
    if isinstance(value, str) and value.endswith("Z") and value[:2] == "20":
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _exact_first(row: list[Any]) -> tuple[list[str], list[float]]:
    """The last digits of numbers are open, and must not decide what is compared with what."""
    numbers = [round(value, 6) for value in row if isinstance(value, float)]
    return [str(value) for value in row if not isinstance(value, float)], numbers
