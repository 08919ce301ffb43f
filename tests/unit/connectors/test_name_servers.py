"""A name server that is slow, or does not know a name, is told in words and holds nobody for long."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_runtime.connectors import name_servers, sample
from pipeline_runtime.connectors.name_servers import look_up
from pipeline_runtime.connectors.sdk import ConnectorError, Ingester, Intake, Place
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.operators.modbus import ModbusConnection
from pipeline_runtime.operators.other_kafka import KafkaConnection
from tests.waiting import wait_until

PUMP = ModbusConnection(host="pump.invalid")
HANGING = ModbusConnection(host="hanging.invalid")
NO_STOP = threading.Event()


def unknown(error: int) -> ConnectorError:
    def ask(*_: Any, **__: Any) -> None:
        raise socket.gaierror(error, "said by the system")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", ask)
        with pytest.raises(ConnectorError) as caught:
            look_up(PUMP, NO_STOP)
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
    look_up(KafkaConnection(servers="a.example:9092, b.example:9092"), NO_STOP)
    with pytest.raises(ConnectorError, match="is not known here"):
        look_up(KafkaConnection(servers="a.example:9092,c.example:9092"), NO_STOP)


def test_an_address_needs_no_name_server() -> None:
    look_up(PUMP.model_copy(update={"host": "127.0.0.1"}), NO_STOP)
    look_up(KafkaConnection(servers="[::1]:9092"), NO_STOP)
    look_up(None, NO_STOP)


class Never(Ingester[Any, Any]):
    def run(self, intake: Intake, stop: threading.Event) -> None:
        raise AssertionError("it connects without an address")


class HangingServer:
    """A name server that answers when it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions = 0
        self.answers = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self._ask)

    def _ask(self, *_: Any, **__: Any) -> None:
        self.questions += 1
        self.answers.wait(60)

    def let_go(self) -> None:
        self.answers.set()
        wait_until(lambda: not name_servers._under_way, "the end of all questions")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingServer]:
    server = HangingServer(monkeypatch)
    yield server
    server.let_go()


def test_a_name_server_that_hangs_is_told_at_the_element_and_the_process_goes_on(
    monkeypatch: pytest.MonkeyPatch, hanging: HangingServer
) -> None:
    monkeypatch.setattr(name_servers, "LOOK_UP_S", 0.1)
    running = RunningTrial(Never(Place("d", "e", None, HANGING)))
    said = f"No name server has told the address of {HANGING.where} within"
    wait_until(lambda: said in running.status.why, "the words")
    running.stop()
    assert not running.hung.is_set()


def test_a_host_is_asked_for_once_at_a_time_and_a_late_answer_counts_for_the_next_try(
    monkeypatch: pytest.MonkeyPatch, hanging: HangingServer
) -> None:
    with monkeypatch.context() as soon:
        soon.setattr(name_servers, "LOOK_UP_S", 0.0)
        for _ in range(3):
            with pytest.raises(ConnectorError, match="within"):
                look_up(HANGING, NO_STOP)
    monkeypatch.setattr(name_servers, "LOOK_UP_S", 60)
    threading.Timer(0.1, hanging.answers.set).start()
    look_up(HANGING, NO_STOP)
    assert hanging.questions == 1


def test_a_stop_ends_a_look_up_with_words(monkeypatch: pytest.MonkeyPatch, hanging: HangingServer) -> None:
    monkeypatch.setattr(name_servers, "LOOK_UP_S", 3600)
    running = RunningTrial(Never(Place("d", "e", None, HANGING)))
    wait_until(lambda: hanging.questions, "the question")
    taken = running.stop(60)
    assert taken.why.startswith(f"No name server has told the address of {HANGING.where} so far.")


def test_a_preview_tells_of_a_name_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch, hanging: HangingServer
) -> None:
    monkeypatch.setattr(sample, "SAMPLE_S", 0.1)
    monkeypatch.setattr(sample, "_END_S", 60)
    found = sample.sampled(Never(Place("d", "e", None, HANGING)))
    assert f"No name server has told the address of {HANGING.where} so far" in found.why


def test_an_unknown_error_of_a_look_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: Any, **__: Any) -> None:
        raise TypeError("no host")

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    with pytest.raises(ConnectorError, match="TypeError: no host"):
        look_up(PUMP, NO_STOP)
