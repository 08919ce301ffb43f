"""The gate outlives a shortage, and lets go of those that have left."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.batch import gate as gate_module
from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_client import GateClient, GateClosed
from tests.shortages import no_more_files, no_more_threads
from tests.waiting import PATIENCE_S, wait_until


class Echo:
    def answer(self, op: str, arguments: dict[str, Any]) -> Any:
        return [op, arguments]


class Hesitant:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.told = threading.Event(), threading.Event()

    def answer(self, op: str, arguments: dict[str, Any]) -> Any:
        self.asked.set()
        return self.told.wait(PATIENCE_S)


class Caller:
    """A client whose file is open before it connects, and which does not wait for ever."""

    def __init__(self, address: str) -> None:
        self._path, _, self._keeper = address.rpartition("#")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)

    def connect(self) -> None:
        self._socket.connect(self._path)

    def send(self, op: str) -> None:
        self._socket.sendall(json.dumps({"op": op, "keeper": self._keeper}).encode() + b"\n")

    def heard(self) -> str:
        with self._socket, self._socket.makefile() as file:
            return file.readline()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[GateServer]:
    monkeypatch.setattr(gate_module, "RETRY_S", 0.01)
    server = GateServer()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("shortage", "said"),
    [(no_more_files, "Too many open files"), (no_more_threads, "can't start new thread")],
    ids=["files", "threads"],
)
def test_who_came_during_a_shortage_is_answered_after_it(
    gate: GateServer, shortage: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = gate.open("group", Echo())
    callers = [Caller(address), Caller(address)]
    with shortage():
        for caller in callers:
            caller.connect()
        wait_until(lambda: said in caplog.text)
    for caller in callers:
        caller.send("hello")
        assert caller.heard() == '{"value": ["hello", {}]}\n'


def test_a_closed_gate_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    gate = GateServer()
    [thread] = set(threading.enumerate()) - before
    gate.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_who_asked_a_departed_keeper_is_hung_up_on_and_nobody_else(gate: GateServer) -> None:
    before = set(threading.enumerate())
    departing, staying = gate.open("moved", Echo()), gate.open("kept", Echo())
    its, others = [GateClient(departing), GateClient(departing)], GateClient(staying)
    for client in (*its, others):
        client.ask("hello")
    assert len(set(threading.enumerate()) - before) == 3

    gate.shut(departing)

    wait_until(lambda: len(set(threading.enumerate()) - before) == 1)
    assert all(client.hung_up() for client in its)
    for client in its:
        with pytest.raises(GateClosed, match="the gate is gone"):
            client.ask("hello")
        client.close()
    assert not others.hung_up()
    assert others.ask("hello") == ["hello", {}]
    others.close()


def test_a_question_that_is_under_way_does_not_keep_a_departed_keepers_connection(gate: GateServer) -> None:
    before = set(threading.enumerate())
    keeper = Hesitant()
    address = gate.open("moved", keeper)
    caller = Caller(address)
    caller.connect()
    caller.send("latest")
    assert keeper.asked.wait(PATIENCE_S)
    gate.shut(address)
    assert caller.heard() == ""
    keeper.told.set()
    wait_until(lambda: not set(threading.enumerate()) - before)


def test_who_asks_for_a_keeper_that_has_left_is_told_and_hung_up_on(gate: GateServer) -> None:
    address = gate.open("moved", Echo())
    gate.shut(address)
    client = GateClient(address)
    with pytest.raises(RuntimeError, match=r"moved@1 is not running on this node"):
        client.ask("hello")
    wait_until(client.hung_up)
    client.close()


def test_what_a_killed_process_has_left_is_removed_and_what_is_in_use_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "fogline-gate-left"
    left.mkdir()
    gate_module._locked(left).close()  # as the kernel does when its process ends
    (left / "gate").touch()
    first, second = GateServer(), GateServer()
    assert set(tmp_path.iterdir()) == {first.directory, second.directory}
    assert first.open("g", Echo()).startswith(str(first.directory))
    first.close()
    second.close()
    assert not list(tmp_path.iterdir())


class Weighing:
    def answer(self, op: str, arguments: dict[str, Any]) -> Any:
        return [op, len(arguments["payload"]), arguments["task"]]


def test_bytes_come_behind_their_request_and_the_next_request_behind_them(gate: GateServer) -> None:
    client = GateClient(gate.open("group", Weighing()))
    for size in (0, 1, 1_000_000):
        assert client.ask("done", payload=b"\n" * size, task=3) == ["done", size, 3]
    client.close()


def test_of_bytes_that_do_not_all_come_nobody_hears(gate: GateServer) -> None:
    heard = Hesitant()
    caller = Caller(gate.open("group", heard))
    caller.connect()
    request = {"op": "done", "keeper": caller._keeper, "payload": 100}
    caller._socket.sendall(json.dumps(request).encode() + b"\n" + b"only these")
    caller._socket.shutdown(socket.SHUT_WR)
    assert caller.heard() == ""
    assert not heard.asked.is_set()
