"""A name server that is slow, or does not know a name, is told in words and holds nobody for long."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from pipeline_runtime.connectors import name_servers
from pipeline_runtime.connectors.name_servers import look_up
from pipeline_runtime.connectors.sdk import ConnectorError, Ingester, Intake, Place
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.operators.modbus import ModbusConnection
from pipeline_runtime.operators.other_kafka import KafkaConnection
from tests.waiting import wait_until

PUMP = ModbusConnection(host="pump.invalid")


def unknown(error: int) -> ConnectorError:
    def ask(*_: Any, **__: Any) -> None:
        raise socket.gaierror(error, "said by the system")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", ask)
        with pytest.raises(ConnectorError) as caught:
            look_up(PUMP)
    return caught.value


def test_a_name_that_nobody_knows_and_a_name_server_that_is_away_are_told_apart() -> None:
    assert str(unknown(socket.EAI_NONAME)) == (
        f"The host of {PUMP.where} is not known here. Check how it is written, and this node's DNS."
    )
    assert str(unknown(socket.EAI_AGAIN)) == (
        f"The host of {PUMP.where} is not known here: no name server answers. Check this node's DNS "
        "and its network."
    )


def test_one_server_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(host: str, *_: Any, **__: Any) -> list[Any]:
        if host != "b.example":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return []

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    look_up(KafkaConnection(servers="a.example:9092, b.example:9092"))
    with pytest.raises(ConnectorError, match="is not known here"):
        look_up(KafkaConnection(servers="a.example:9092,c.example:9092"))


def test_an_address_needs_no_name_server() -> None:
    look_up(PUMP.model_copy(update={"host": "127.0.0.1"}))
    look_up(KafkaConnection(servers="[::1]:9092"))
    look_up(None)


class Never(Ingester[Any, Any]):
    def run(self, intake: Intake, stop: threading.Event) -> None:
        raise AssertionError("it connects without an address")


def test_a_name_server_that_hangs_is_told_at_the_element_and_the_process_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(name_servers, "LOOK_UP_S", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(60))
    running = RunningTrial(Never(Place("d", "e", None, PUMP)))
    said = f"No name server has told the address of {PUMP.where} within"
    wait_until(lambda: said in running.status.why, "the words")
    running.stop()
    assert not running.hung.is_set()
    answers.set()
