"""MQTT in, a filter and PostgreSQL out, and OPC UA in, while their servers are killed or hang, their elements
move and their node is killed.

MQTT in loses nothing. OPC UA in loses nothing outside of a gap that is told. PostgreSQL has each row of its
stream exactly once.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Any

import httpx
import pytest
from asyncua import Client as OpcUaClient, ua

from pipeline_runtime.model.ids import stream_topic
from tests.brokers import Broker
from tests.chosen import chosen
from tests.databases import Database
from tests.integration.pipelines.driving import (
    API,
    CommittedReader,
    deploy,
    element,
    ended_handover,
    order_handover,
    undeploy,
)
from tests.integration.pipelines.losses import Span, gap_told, gaps, missing_runs, unexplained
from tests.integration.pipelines.statistics import RECOVERY_S, kill_process
from tests.opcua_servers import PRESS, OpcUaServer
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

PIPELINE = "faults"
# Each source, and what writes its rows into which table.
SINKS = {"in": ("out", "evens"), "press": ("kept", "strokes")}


class Plant:
    """The servers, and what sends numbers to them until `finish`. `sources`: those of SINKS that are used."""

    def __init__(self, directory: Path, sources: Sequence[str]) -> None:
        self.sources = sources
        # A number is on the disk before the next one is sent.
        self.broker = Broker(directory, None, "autosave_interval 1", "autosave_on_changes true")
        self.database = Database()
        self.press = OpcUaServer()
        self.servers: dict[str, Any] = {"in": self.broker, "out": self.database, "press": self.press}
        self.sends = {"in": self._publish, "press": self._write_values}
        self.published: list[int] = []
        self.written: list[int] = [0]  # the value at the start
        self.written_s: dict[int, float] = {}  # when, since 1970
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self.sends[each], daemon=True) for each in sources]

    def __enter__(self) -> Plant:
        for server in self.servers.values():
            server.__enter__()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        for server in self.servers.values():
            server.__exit__()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _publish(self) -> None:
        client = self.broker.client()
        client.reconnect_delay_set(1, 1)
        while not self._stop.wait(0.02):
            self._publish_one(client, len(self.published))
        client.disconnect()
        client.loop_stop()

    def _publish_one(self, client: Any, number: int) -> None:
        """Returns when the broker has confirmed it, perhaps more than once."""
        while not self._stop.is_set():
            info = client.publish("plant/a/t", json.dumps({"n": number}).encode(), 1)
            with suppress(RuntimeError):  # there is no connection
                info.wait_for_publish(5)
                if info.is_published():
                    self.published.append(number)
                    return
            self._stop.wait(0.2)

    def _write_values(self) -> None:
        asyncio.run(self._writing())

    async def _writing(self) -> None:
        while not self._stop.is_set():
            with suppress(Exception):  # it is killed or hangs
                async with OpcUaClient(f"opc.tcp://127.0.0.1:{self.press.port}/press", timeout=4) as client:
                    node = client.get_node(f"{PRESS}.Strokes")
                    while not self._stop.is_set():
                        value = self.written[-1] + 1
                        await node.write_value(ua.DataValue(ua.Variant(value, ua.VariantType.Int64)))
                        self.written.append(value)
                        self.written_s[value] = time()
                        await asyncio.sleep(0.1)
            await asyncio.sleep(0.2)


def document(sources: Sequence[str]) -> dict[str, Any]:
    messages = {
        "connection": "faults-broker",
        "topics": ["plant/+/t"],
        "columns": [{"name": "n", "type": "integer"}],
    }
    strokes = {"name": "n", "type": "integer", "node": f"{PRESS}.Strokes"}
    values = {"connection": "faults-press", "publish_ms": 50, "sample_ms": 20, "columns": [strokes]}
    tables = {"connection": "faults-database", "create": True}

    def placed(id: str, type_: str, source: str | None, **params: Any) -> dict[str, Any]:
        inputs = {"inputs": {"in": source}} if source else {}
        return {"id": id, "type": type_, "params": params, "node": "edge-a", **inputs}

    elements = {
        "in": [
            placed("in", "mqtt-in", None, **messages),
            placed("even", "filter", "in", condition="n % 2 = 0"),
            placed("out", "postgresql-out", "even", **tables, table="evens"),
        ],
        "press": [
            placed("press", "opcua-in", None, **values),
            placed("kept", "postgresql-out", "press", **tables, table="strokes"),
        ],
    }
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {"elements": [each for source in sources for each in elements[source]]},
    }


class Running:
    """The pipeline, and what it has written."""

    def __init__(self, fogline: RunningFogline, client: httpx.Client, plant: Plant) -> None:
        self.fogline, self.client, self.plant = fogline, client, plant
        self.moved = 0  # how many moves were done
        connections = (
            ("faults-broker", "mqtt", plant.broker),
            ("faults-database", "postgresql", plant.database),
            ("faults-press", "opcua", plant.press),
        )
        for name, kind, server in connections:
            fields = server.connection().model_dump(mode="json", exclude_none=True)
            client.delete(f"{API}/connections/{name}")  # that of the other form of this test
            made = client.post(f"{API}/connections", json={"name": name, "kind": kind, "fields": fields})
            assert made.status_code == 201, made.text
        drawn = document(plant.sources)
        self.deployment = deploy(client, drawn)
        for id in (each["id"] for each in drawn["spec"]["elements"]):
            wait_until(lambda id=id: self.is_on(id, "edge-a"), f"{id} to run", RECOVERY_S)
        for id in plant.sources:
            wait_until(lambda id=id: self.said(id) == "connected", f"{id} to be connected", RECOVERY_S)
        # What was sent before that is nobody's.
        self.first_published, self.first_written = len(plant.published), len(plant.written)

    def is_on(self, id: str, node: str) -> bool:
        found = element(self.client, PIPELINE, id)
        return bool(found["status"] in ("running", "lagging") and found["node"] == node)

    def said(self, id: str) -> str:
        """Returns the state of its connector."""
        return str((element(self.client, PIPELINE, id)["connector"] or {}).get("state"))

    def numbers(self, table: str) -> Counter[int]:
        try:
            return Counter(n for [n] in self.plant.database.ask(f"SELECT n FROM {table}"))
        except Exception:  # it is not made yet
            return Counter()

    def flows(self) -> None:
        """Waits until numbers that are sent from now on arrive."""
        evens, strokes = len(self.plant.published), self.plant.written[-1]
        wait_until(lambda: max(self.numbers("evens"), default=0) > evens + 10, "evens", RECOVERY_S)
        if "press" in self.plant.sources:
            wait_until(lambda: max(self.numbers("strokes"), default=0) > strokes + 5, "strokes", RECOVERY_S)

    def gaps(self, id: str) -> list[Span]:
        return gaps(self.client, PIPELINE, id)

    def fault(self, id: str, how: str, to: str) -> None:
        """Kills or hangs the server of an element, moves the element meanwhile, and lets the server go on."""
        server = self.plant.servers[id]
        if how == "killed":
            server.kill()
        else:
            server.hang()
        handover = order_handover(self.client, PIPELINE, id, "migrate", to)
        wait_until(
            lambda: self.said(id) == "failing",
            f"{id} to say that its server was {how}",
            RECOVERY_S,
        )
        if how == "killed":
            server.start()
        else:
            server.go_on()
        ended = ended_handover(self.client, handover, f"the move of {id}")
        print(f"{id} to {to} while its server was {how}: {ended['outcome']}, {ended['message']}")
        self.moved += ended["outcome"] == "done"
        self.flows()

    def assert_nothing_is_lost_or_twice(self) -> None:
        self.plant.finish()
        published = [n for n in self.plant.published[self.first_published :] if n % 2 == 0]
        sent_by = {"in": published, "press": self.plant.written[self.first_written :]}
        for id in self.plant.sources:
            (sink, table), sent = SINKS[id], sent_by[id]
            wait_until(
                lambda table=table, sent=sent: sent[-1] in self.numbers(table),
                f"the last of {id}",
                RECOVERY_S,
            )
            wait_until(
                lambda id=id, table=table, sent=sent: self.is_explained(id, table, sent),
                lambda id=id, table=table, sent=sent: self.story(id, table, sent),
            )
            print(self.story(id, table, sent))
            reader = CommittedReader(self.fogline.bootstrap, stream_topic(self.deployment, sink, "out"))
            try:
                found = self.numbers(table)
                rows = reader.read(found.total(), RECOVERY_S)
                assert Counter(row["n"] for _, row in rows) == found
            finally:
                reader.close()

    def is_explained(self, id: str, table: str, sent: Sequence[int]) -> bool:
        """Returns whether each run of numbers that are missing lies in a gap that was told. The broker keeps
        all of them for MQTT in, so none of those may be missing."""
        runs = missing_runs(sent, self.numbers(table))
        if id == "in":
            return not runs
        times_s = [(self.plant.written_s[first], self.plant.written_s[last]) for first, last in runs]
        return unexplained(times_s, self.gaps(id)) == []

    def story(self, id: str, table: str, sent: Sequence[int]) -> str:
        found = self.numbers(table)
        return (
            f"{id}: {len(sent)} sent, {len(found)} came, {found.total() - len(found)} repeats, "
            f"gaps told: {self.gaps(id)}, missing: {missing_runs(sent, found)}"
        )


def test_a_loss_is_explained_only_by_a_gap_of_its_own_time() -> None:
    away = gap_told("A gap in press: The subscription was away for 12.5 s, and the server keeps", 1000.0)
    assert away == (987.5, 1000.0)
    lost = [(980.0, 999.0), (900.0, 901.0), (986.0, 1030.0)]
    assert unexplained(lost, [away]) == [(900.0, 901.0), (986.0, 1030.0)]
    assert unexplained([(999.0, 999.5)], [gap_told("3 messages of the server did not come", 1000.0)]) == []
    missed = gap_told("A gap in poll: 12 polls of the HTTP server gave no usable answer", 1000.0, 0.5)
    assert missed == (984.0, 1000.0)


@pytest.fixture
def plant(tmp_path: Path, faults: Callable[[Running], None]) -> Iterator[Plant]:
    with Plant(tmp_path, ("in",) if faults is short else tuple(SINKS)) as running:
        yield running


def short(running: Running) -> None:
    """The broker is killed while MQTT in moves."""
    running.fault("in", "killed", "edge-b")
    assert running.moved == 1


def long(running: Running) -> None:
    """Each server is killed and hangs while its element moves, twice, and each node is killed with a server
    away."""
    to = {"edge-a": "edge-b", "edge-b": "edge-a"}
    for _ in range(2):
        for id in ("in", "out", "press"):
            for how in ("killed", "hung"):
                running.fault(id, how, to[str(element(running.client, PIPELINE, id)["node"])])
        for node, id in (("edge-a", "out"), ("edge-b", "in")):
            running.plant.servers[id].hang()
            kill_process(running.fogline, node)
            running.plant.servers[id].go_on()
            running.flows()
    assert running.moved >= 8  # a move to a node that was just killed fails


@pytest.mark.parametrize("faults", chosen([short, long], always=[short]))
def test_nothing_is_lost_without_a_gap_and_nothing_is_written_twice(
    fogline: RunningFogline, client: httpx.Client, plant: Plant, faults: Callable[[Running], None]
) -> None:
    running = Running(fogline, client, plant)
    running.flows()
    faults(running)
    running.assert_nothing_is_lost_or_twice()
    # While its servers still run: it would wait for those.
    undeploy(client, PIPELINE)
