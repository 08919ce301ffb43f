"""A request arrives unchanged at the keeper."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import msgpack

from pipeline_runtime.batch import gate_messages as messages
from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import (
    Describe,
    FirstToken,
    GroupDescription,
    KeepStates,
    KeysBetween,
    NextToken,
    NotUnderstood,
    NumberOf,
    PartProcessed,
    RecordWaits,
    Reject,
    Request,
    SchemaOf,
    Slice,
    SliceRead,
    SlicesOf,
    StatesBetween,
    StatesOf,
    TaskPart,
    TasksOf,
    Wire,
)
from tests.waiting import PATIENCE_S

GROUP = GroupDescription({"group": "g"}, {"bootstrap": "none:1"}, {"a.csv": "/a.csv"}, "/here")
ROWS = [[7, 1_000, b"k", b'{"v": 1}', []]]
WAITS = RecordWaits("t", 1, 57, "plant", 9)
KEPT = KeepStates(["a", None], [b"\xff{}", None], [-1, 7], 1, ["b"])


class Recorded:
    """A keeper that answers with what it is given, and takes note of what it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, method: str) -> Any:
        def answered(*arguments: Any) -> Any:
            self.asked.append((method, arguments))
            return self.answer

        return answered


EXCHANGES: list[tuple[Request[Any], str, tuple[Any, ...], Any]] = [
    (Describe(), "describe", (), GROUP),
    (FirstToken(), "first_token", (), 0),
    (NextToken(7), "next_token", (7,), 8),
    (TasksOf(8), "tasks_of", (8,), [TaskPart(8, 0), TaskPart(8, 1)]),
    (SlicesOf(8, 1), "slices_of", (8, 1), [Slice(0, 42, 1, 5, 9, ROWS), Slice(-1, 42)]),
    (SlicesOf(8, 1), "slices_of", (8, 1), None),
    (PartProcessed(1, b"\n{}\n"), "part_processed", (1, b"\n{}\n"), None),
    (StatesOf(["a", None], 1), "states_of", (["a", None], 1), [b"\xff{}", None]),
    (StatesBetween("a", "c"), "states_between", ("a", "c"), [["a", b"{}"], ["b", b"{}"]]),
    (KeysBetween("a", "c", 1), "keys_between", ("a", "c", 1), ["a"]),
    (KEPT, "keep_states", (KEPT,), None),
    (WAITS, "record_waits", (WAITS,), None),
]


@pytest.fixture
def gate() -> Iterator[GateServer]:
    server = GateServer()
    yield server
    server.close()


@pytest.mark.parametrize(("request_", "method", "arguments", "answer"), EXCHANGES)
def test_a_request_is_one_method_of_the_keeper_and_its_answer_comes_back(
    gate: GateServer, request_: Request[Any], method: str, arguments: tuple[Any, ...], answer: Any
) -> None:
    keeper: Any = Recorded(answer)
    client = GateClient(gate.open("g", keeper))
    assert client.ask(request_) == answer
    assert keeper.asked == [(method, arguments)]
    client.close()


def test_what_a_task_says_of_its_slice_arrives_as_it_was_said(gate: GateServer) -> None:
    keeper: Any = Recorded(None)
    client = GateClient(gate.open("g", keeper))
    read = SliceRead(0, 1, 3, 90, [Reject(7, "{", "no JSON")], ended=True, seen=["n"])
    client.ask(read)
    assert keeper.asked == [("slice_read", (read,))]
    client.close()


def test_every_request_is_tested() -> None:
    elsewhere = {SliceRead, SchemaOf, NumberOf}  # the last two by tests/unit/workers/test_registries.py
    assert {type(each[0]) for each in EXCHANGES} | elsewhere == set(Request.__subclasses__())


def test_a_message_that_is_too_long_is_refused_on_either_side(
    gate: GateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MESSAGE_BYTES_MAX", 1_000)
    keeper: Any = Recorded(["x" * 2_000])
    client = GateClient(gate.open("g", keeper))
    with pytest.raises(NotUnderstood, match="a message of the gate has more than"):
        client.ask(KeepStates(["a"], [b"x" * 2_000], [-1], 0))
    with pytest.raises(NotUnderstood, match="a message of the gate has more than"):
        client.ask(PartProcessed(0, b"x" * 2_000))
    assert keeper.asked == []
    with pytest.raises(RuntimeError, match="a message of the gate has more than"):
        client.ask(KeysBetween("a", "b", 1))
    assert keeper.asked == [("keys_between", ("a", "b", 1))], "and the connection is still of use"
    client.close()


def message(data: Any) -> bytes:
    body = msgpack.encode(data)
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "said",
    [
        b"no message at all",
        b"\0\0\0\1\xc1",
        message([]),
        message({"keeper": "g"}),
        message({"ask": "Hello", "keeper": "g"}),
        message({"ask": "NextToken", "keeper": "g"}),
    ],
)
def test_what_is_no_request_is_refused(said: bytes) -> None:
    one, other = socket.socketpair()
    with one, other, Wire(other) as wire:
        one.sendall(said)
        with pytest.raises(NotUnderstood):
            wire.read_request()


def test_who_sends_what_is_no_request_is_told_and_hung_up_on(gate: GateServer) -> None:
    before = set(threading.enumerate())
    address = gate.open("g", Recorded(None))  # type: ignore[arg-type]
    with socket.socket(socket.AF_UNIX) as caller, caller.makefile("rb") as answers:
        caller.settimeout(PATIENCE_S)
        caller.connect(address.rpartition("#")[0])
        caller.sendall(message([]))
        assert b"error" in answers.read(), "and nothing else"
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
