"""A webhook whose rows go to an HTTP server, an OPC UA server and a Modbus device, and polls of an HTTP
server and of a device, while these are killed or hang, all elements move, and their node is killed.

What was answered with 202 is not lost, and each system gets each row at least once. A number that no poll has
brought in lies in a gap that is told.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import time
from typing import Any

import httpx
import psutil
import pytest

from pipeline_runtime.model.ids import stream_topic
from tests import http_servers, modbus_devices
from tests.chosen import chosen
from tests.http_servers import HttpServer
from tests.integration.pipelines.driving import (
    API,
    CommittedReader,
    deploy,
    element,
    ended_handover,
    order_handover,
    undeploy,
)
from tests.integration.pipelines.losses import gaps, missing_runs, unexplained
from tests.integration.pipelines.statistics import RECOVERY_S, kill_process
from tests.killable import KillableServer, kept
from tests.modbus_devices import Device
from tests.opcua_servers import PRESS, OpcUaServer
from tests.ports import free_ports
from tests.running import RunningFogline, alive_still
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]

PIPELINE = "machines"
TOKEN = "0123456789abcdef"
SINKS = ("sent", "set", "put")
METER_S, POLL_S = 0.1, 0.5
# Each source that polls: how often it does, and how often the system has a new number.
POLLS = {"meter": (METER_S, modbus_devices.CLOCK_S), "poll": (POLL_S, http_servers.CLOCK_S)}
ELEMENTS = ("hook", *SINKS, *POLLS)
TO = {"edge-a": "edge-b", "edge-b": "edge-a"}


class Plant:
    """The systems, and who sends numbers to the webhook until `finish`."""

    def __init__(self, directory: Path, elements: Sequence[str]) -> None:
        """`elements`: those of ELEMENTS that there are."""
        self.elements = elements
        self.journals = {each: directory / f"{each}.txt" for each in SINKS}
        self.http = HttpServer(self.journals["sent"])
        self.press = OpcUaServer(journal=self.journals["set"])
        self.device = Device(self.journals["put"])
        # Who has which one.
        servers = {"sent": self.http, "poll": self.http, "set": self.press, "put": self.device}
        servers["meter"] = self.device
        self.servers: set[KillableServer] = {servers[each] for each in elements if each in servers}
        [self.port] = free_ports(1)
        self.safe: list[int] = []  # those that were answered with 202
        self._stop = threading.Event()
        self._open = ExitStack()
        self._sender = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> Plant:
        with ExitStack() as opening:
            for each in self.servers:
                opening.enter_context(each)
            self._open = opening.pop_all()
        self._sender.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        self._open.close()

    def finish(self) -> None:
        self._stop.set()
        self._sender.join(60)

    def _send(self) -> None:
        number = 0
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(headers=headers, trust_env=False, timeout=20) as client:
            while not self._stop.wait(0.05):
                try:
                    answer = client.post(f"http://127.0.0.1:{self.port}/rows", json={"n": number})
                except httpx.HTTPError:  # it is not up, hangs, or was killed
                    continue
                if answer.status_code == 202:
                    self.safe.append(number)
                    number += 1


def document(plant: Plant) -> dict[str, Any]:
    number = {"name": "n", "type": "integer"}
    register = {"type": "uint32", "kind": "holding"}
    webhook = {"port": plant.port, "address": "127.0.0.1", "path": "/rows", "columns": [number]}
    asked = {"path": "/rows", "every_s": POLL_S, "columns": [number], "id_field": "n", "timeout_s": 3}
    clock = {**register, "name": "n", "address": modbus_devices.CLOCK}
    strokes = {"column": "n", "node": f"{PRESS}.Strokes"}
    target = {**register, "column": "n", "address": modbus_devices.KEPT}
    made: dict[str, tuple[str, str, dict[str, Any]]] = {
        "hook": ("http-in", "hook", webhook),
        "sent": ("http-out", "http", {"path": "/rows", "timeout_s": 3}),
        "set": ("opcua-out", "press", {"nodes": [strokes], "late_s": None}),
        "put": ("modbus-out", "device", {"registers": [target], "late_s": None}),
        "meter": ("modbus-in", "device", {"every_ms": int(METER_S * 1000), "registers": [clock]}),
        "poll": ("http-poll", "http", asked),
    }
    elements = [
        {
            "id": id,
            "type": type_,
            "node": "edge-a",
            "params": {"connection": f"{PIPELINE}-{connection}", **params},
            **({"inputs": {"in": "hook"}} if id in SINKS else {}),
        }
        for id, (type_, connection, params) in made.items()
        if id in plant.elements
    ]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {"elements": elements},
    }


class Running:
    """The pipeline, and what it has brought in and taken out."""

    def __init__(self, fogline: RunningFogline, client: httpx.Client, plant: Plant) -> None:
        self.fogline, self.client, self.plant = fogline, client, plant
        fields = {
            "hook": ("webhook", {"token": TOKEN}),
            "http": ("http", plant.http.connection().model_dump(mode="json", exclude_none=True)),
            "press": ("opcua", plant.press.connection().model_dump(mode="json", exclude_none=True)),
            "device": ("modbus", plant.device.connection().model_dump(mode="json", exclude_none=True)),
        }
        for name, (kind, given) in fields.items():
            client.delete(f"{API}/connections/{PIPELINE}-{name}")  # that of the other form of this test
            body = {"name": f"{PIPELINE}-{name}", "kind": kind, "fields": given}
            made = client.post(f"{API}/connections", json=body)
            assert made.status_code == 201, made.text
        deployment = deploy(client, document(plant))
        self._readers = {
            id: CommittedReader(fogline.bootstrap, stream_topic(deployment, id)) for id in plant.elements
        }
        self.sinks = [id for id in SINKS if id in plant.elements]
        self.polls = [id for id in POLLS if id in plant.elements]
        for id in plant.elements:
            wait_until(lambda id=id: self.works(id), f"{id} to run", RECOVERY_S)

    def close(self) -> None:
        for each in self._readers.values():
            each.close()

    def node(self, id: str) -> str:
        return str(element(self.client, PIPELINE, id)["node"])

    def said(self, id: str) -> str:
        """Returns the state of its connector."""
        return str((element(self.client, PIPELINE, id)["connector"] or {}).get("state"))

    def works(self, id: str) -> bool:
        found = element(self.client, PIPELINE, id)
        return found["status"] in ("running", "lagging") and self.said(id) == "connected"

    def stream(self, id: str) -> Counter[int]:
        """Returns how often each number is in an element's stream: of a sink, what it has to deliver."""
        return Counter(row["n"] for _, row in self._readers[id].poll())

    def flows(self) -> None:
        """Waits until numbers of now arrive everywhere."""
        safe = len(self.plant.safe)
        for id in self.sinks:
            journal = self.plant.journals[id]
            wait_until(
                lambda journal=journal: max(kept(journal), default=0) > safe + 10,
                f"rows of now in {id}",
                RECOVERY_S,
            )
        for id in self.polls:
            now = int(time() / POLLS[id][1])
            wait_until(
                lambda id=id, now=now: max(self.stream(id), default=0) >= now,
                f"rows of now from {id}",
                RECOVERY_S,
            )

    def away(self, how: str, meanwhile: Callable[[], None]) -> None:
        """All systems are killed or hang, until that is over."""
        with ExitStack() as back:  # one that does not start leaves no other one away
            for each in self.plant.servers:
                each.kill() if how == "killed" else each.hang()
                back.callback(each.start if how == "killed" else each.go_on)
            meanwhile()

    def move_all(self, how: str) -> None:
        """All elements but the webhook move while their systems are away."""
        moving = {id: self.node(id) for id in (*self.sinks, *self.polls)}
        ordered: dict[str, str] = {}

        def order() -> None:
            for id, node in moving.items():
                ordered[id] = order_handover(self.client, PIPELINE, id, "migrate", TO[node])
            for id in moving:
                wait_until(
                    lambda id=id: self.said(id) == "failing",
                    f"{id} to say that its system was {how}",
                    RECOVERY_S,
                )

        self.away(how, order)
        for id, handover in ordered.items():
            ended = ended_handover(self.client, handover, f"the move of {id}")
            assert (ended["outcome"], self.node(id)) == ("done", TO[moving[id]]), ended
        self.flows()

    def move_webhook(self, how: str) -> None:
        """Its process is killed or hangs while it moves."""
        process = self._webhook()
        process.kill() if how == "killed" else process.suspend()
        node = self.node("hook")
        handover = order_handover(self.client, PIPELINE, "hook", "migrate", TO[node])
        ended = ended_handover(self.client, handover, "the move of the webhook")
        assert (ended["outcome"], self.node("hook")) == ("done", TO[node]), ended
        self.flows()
        wait_until(lambda: not alive_still(process), "the process before the move to be gone")

    def kill_node(self, how: str) -> None:
        """The node of the elements is killed while the systems are away."""
        name = self.node("hook")
        assert {self.node(id) for id in self.plant.elements} == {name}
        self.away(how, lambda: kill_process(self.fogline, name))
        self.flows()

    def _webhook(self) -> psutil.Process:
        """Returns the process that listens for the webhook."""
        assert self.fogline.process is not None
        for each in self.fogline.process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has just ended
                if any(line.laddr.port == self.plant.port for line in each.net_connections("tcp4")):
                    return each
        raise AssertionError("nobody listens for the webhook")


class Oracle:
    """What must be true when nothing is sent any more."""

    def __init__(self, running: Running, began_s: float) -> None:
        self._running, self._plant = running, running.plant
        self._began_s, self._ended_s = began_s, time()

    def holds(self) -> bool:
        return not self.faults()

    def faults(self) -> list[str]:
        return [*self._of_webhook(), *self._of_sinks(), *self._of_polls()]

    def story(self) -> str:
        safe, brought = self._plant.safe, self._running.stream("hook")
        told = [f"hook: {len(safe)} were answered with 202, {brought.total() - len(brought)} repeats"]
        for id in self._running.sinks:
            found = kept(self._plant.journals[id])
            told.append(f"{id}: {len(found)} arrived, {found.total() - len(found)} repeats")
        for id in self._running.polls:
            told.append(f"{id}: missing {self._lost(id)}, gaps {self._gaps(id)}")
        return "\n".join([*told, *self.faults()])

    def _of_webhook(self) -> list[str]:
        lost = missing_runs(self._plant.safe, self._running.stream("hook"))
        return [f"hook has lost {lost}"] if lost else []

    def _of_sinks(self) -> Iterator[str]:
        brought = self._running.stream("hook")
        for id in self._running.sinks:
            if (has := self._running.stream(id)) != brought:
                yield f"{id} has to deliver {len(has)} numbers, and the webhook brought {len(brought)} in"
            if lost := missing_runs(sorted(has), kept(self._plant.journals[id])):
                yield f"{id} has lost {lost}"

    def _of_polls(self) -> Iterator[str]:
        for id in self._running.polls:
            if lost := unexplained(self._lost(id), self._gaps(id)):
                yield f"{id} has told no gap for {lost}"

    def _lost(self, id: str) -> list[tuple[float, float]]:
        _, clock_s = POLLS[id]
        numbers = range(int(self._began_s / clock_s), int(self._ended_s / clock_s))
        runs = missing_runs(numbers, self._running.stream(id))
        return [(first * clock_s, (last + 1) * clock_s) for first, last in runs]

    def _gaps(self, id: str) -> list[tuple[float, float]]:
        return gaps(self._running.client, PIPELINE, id, POLLS[id][0])


@pytest.fixture
def plant(tmp_path: Path, faults: Callable[[Running], None]) -> Iterator[Plant]:
    with Plant(tmp_path, ("hook", "put") if faults is short else ELEMENTS) as running:
        yield running


def short(running: Running) -> None:
    """The device is killed while its element moves."""
    running.move_all("killed")


def long(running: Running) -> None:
    """Whatever there is is killed and hangs, while the elements move, and while their node is killed."""
    for how in ("killed", "hung"):
        running.move_all(how)
        running.move_webhook(how)
    for how in ("hung", "killed"):
        running.kill_node(how)


@pytest.mark.parametrize("faults", chosen([short, long], always=[short]))
def test_nothing_is_lost_without_a_gap_while_systems_and_nodes_fail(
    fogline: RunningFogline, client: httpx.Client, plant: Plant, faults: Callable[[Running], None]
) -> None:
    running = Running(fogline, client, plant)
    running.flows()
    began_s = time()
    faults(running)
    oracle = Oracle(running, began_s)
    plant.finish()
    wait_until(oracle.holds, oracle.story, RECOVERY_S)
    print(oracle.story())
    letters = {id: element(client, PIPELINE, id)["dead_letters_total"] for id in plant.elements}
    assert set(letters.values()) == {0}, letters
    running.close()
    # While the systems still run: it would wait for those.
    undeploy(client, PIPELINE)
