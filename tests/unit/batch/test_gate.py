"""The gate outlives a shortage, and lets go of those that have left."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from pipeline_runtime.batch import gate as gate_module
from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_client import GateClient, GateClosed
from pipeline_runtime.batch.gate_messages import GateKeeper, NextToken, PartProcessed, Payload
from tests.shortages import no_more_files, no_more_threads
from tests.waiting import PATIENCE_S, wait_until


class NextOne(GateKeeper):
    """Answers as a group does that always has a next batch."""

    def next_token(self, done: int) -> int:
        return done + 1


class Hesitant(NextOne):
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.told = threading.Event(), threading.Event()

    def next_token(self, done: int) -> int:
        self.asked.set()
        self.told.wait(PATIENCE_S)
        return super().next_token(done)

    def part_processed(self, task: int, payload: Payload) -> None:
        self.asked.set()


class Caller:
    """A client whose file is open before it connects, and which does not wait for ever."""

    def __init__(self, address: str) -> None:
        self._path, _, self._keeper = address.rpartition("#")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)

    def connect(self) -> None:
        self._socket.connect(self._path)

    def send(self, ask: str, **fields: Any) -> None:
        request = {"ask": ask, "keeper": self._keeper, **fields}
        message = msgpack.encode(request)
        self._socket.sendall(len(message).to_bytes(4, "big") + message)

    def heard(self) -> Any:
        """None if it is hung up on."""
        with self._socket, self._socket.makefile("rb") as file:
            size = int.from_bytes(file.read(4), "big")
            return msgpack.decode(file.read(size)) if size else None


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
    address = gate.open("group", NextOne())
    callers = [Caller(address), Caller(address)]
    with shortage():
        for caller in callers:
            caller.connect()
        wait_until(lambda: said in caplog.text)
    for caller in callers:
        caller.send("NextToken", done=7)
        assert caller.heard() == {"value": 8}


def test_a_closed_gate_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    gate = GateServer()
    [thread] = set(threading.enumerate()) - before
    gate.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_who_asked_a_departed_keeper_is_hung_up_on_and_nobody_else(gate: GateServer) -> None:
    before = set(threading.enumerate())
    departing, staying = gate.open("moved", NextOne()), gate.open("kept", NextOne())
    its, others = [GateClient(departing), GateClient(departing)], GateClient(staying)
    for client in (*its, others):
        client.ask(NextToken(1))
    assert len(set(threading.enumerate()) - before) == 3

    gate.shut(departing)

    wait_until(lambda: len(set(threading.enumerate()) - before) == 1)
    assert all(client.hung_up() for client in its)
    for client in its:
        with pytest.raises(GateClosed, match="the gate is gone"):
            client.ask(NextToken(1))
        client.close()
    assert not others.hung_up()
    assert others.ask(NextToken(1)) == 2
    others.close()


def test_a_question_that_is_under_way_does_not_keep_a_departed_keepers_connection(gate: GateServer) -> None:
    before = set(threading.enumerate())
    keeper = Hesitant()
    address = gate.open("moved", keeper)
    caller = Caller(address)
    caller.connect()
    caller.send("NextToken", done=1)
    assert keeper.asked.wait(PATIENCE_S)
    gate.shut(address)
    assert caller.heard() is None
    keeper.told.set()
    wait_until(lambda: not set(threading.enumerate()) - before)


def test_who_asks_for_a_keeper_that_has_left_is_told_and_hung_up_on(gate: GateServer) -> None:
    address = gate.open("moved", NextOne())
    gate.shut(address)
    client = GateClient(address)
    with pytest.raises(RuntimeError, match=r"moved@1 is not running on this node"):
        client.ask(NextToken(1))
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
    assert first.open("g", NextOne()).startswith(str(first.directory))
    first.close()
    second.close()
    assert not list(tmp_path.iterdir())


class Weighing(GateKeeper):
    def __init__(self) -> None:
        self.weighed: list[tuple[int, int]] = []

    def part_processed(self, task: int, payload: Payload) -> None:
        self.weighed.append((task, len(payload)))


def test_bytes_come_behind_their_request_and_the_next_request_behind_them(gate: GateServer) -> None:
    keeper = Weighing()
    client = GateClient(gate.open("group", keeper))
    for size in (0, 1, 1_000_000):
        client.ask(PartProcessed(3, b"\n" * size))
    assert keeper.weighed == [(3, 0), (3, 1), (3, 1_000_000)]
    client.close()


def test_of_bytes_that_do_not_all_come_nobody_hears(gate: GateServer) -> None:
    heard = Hesitant()
    caller = Caller(gate.open("group", heard))
    caller.connect()
    caller.send("PartProcessed", task=0, payload=100)
    caller._socket.sendall(b"only these")
    caller._socket.shutdown(socket.SHUT_WR)
    assert caller.heard() is None
    assert not heard.asked.is_set()


class Refusing(Weighing):
    def part_processed(self, task: int, payload: Payload) -> None:
        if not payload:
            raise ValueError("no rows")
        super().part_processed(task, payload)

    def next_token(self, done: int) -> int:
        return done + 1


def test_what_is_told_is_heard_first_and_its_failure_is_raised_by_the_next_request(gate: GateServer) -> None:
    keeper = Refusing()
    client = GateClient(gate.open("group", keeper))
    client.tell(PartProcessed(1, b"some"))
    client.tell(PartProcessed(2, b"more"))
    assert client.ask(NextToken(1)) == 2
    assert keeper.weighed == [(1, 4), (2, 4)]
    client.tell(PartProcessed(3, b""))
    with pytest.raises(RuntimeError, match="no rows"):
        client.ask(NextToken(2))
    assert client.ask(NextToken(7)) == 8, "each request has its own answer again"
    client.close()
