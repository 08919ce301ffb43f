"""A name server that is slow, or does not know a name, is told in words and holds nobody for long."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from time import monotonic
from typing import Any

import pytest

from pipeline_runtime.connectors import name_servers, sample
from pipeline_runtime.connectors.name_servers import by_address, look_up
from pipeline_runtime.connectors.sdk import ConnectorError, Ingester, Intake, Place
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.operators.connections import ConnectionFields
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


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example"])
def test_a_text_that_can_be_no_name_is_told_as_an_unknown_host(host: str) -> None:
    with pytest.raises(ConnectorError, match=r"is not known here\. Check how it is written"):
        look_up(PUMP.model_copy(update={"host": host}), NO_STOP)


class OtherConnection(ConnectionFields):
    host: Any


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        *(("pump.example", ("pump.example",)), ("10.0.0.5", ("10.0.0.5",)), ("::1", ("::1",))),
        *((each, ()) for each in ("http://pump.example", "pump.example:502", "/run/pump", "", None)),
        (ip_address("10.0.0.5"), ()),
    ],
)
def test_what_a_connection_calls_host_and_is_none_is_not_looked_up(host: Any, hosts: tuple[str]) -> None:
    assert OtherConnection(host=host).hosts == hosts


def test_whoever_connects_by_address_asks_no_name_server_and_tries_each_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, asked, known = "two-addresses.example", 0, socket.getaddrinfo

    def ask(name: str, *more: Any, **named: Any) -> list[Any]:
        nonlocal asked
        if name != host:  # what other tests have left running asks, too
            return known(name, *more, **named)
        asked += 1
        return [(0, 0, 0, "", (address, 0)) for address in ("fd00::1", "10.0.0.5")]

    def refused(address: str, timeout_s: float) -> str:
        if address == "fd00::1":
            raise ConnectionRefusedError
        return f"{address} within {timeout_s:g} s"

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    look_up(PUMP.model_copy(update={"host": host}), NO_STOP)
    assert by_address(host, refused) == "10.0.0.5 within 2.5 s"
    assert asked == 1
    with pytest.raises(ConnectionRefusedError):
        by_address("fd00::1", refused)


class Never(Ingester[Any, Any]):
    def run(self, intake: Intake, stop: threading.Event) -> None:
        raise AssertionError("it connects without an address")


class HangingServer:
    """A name server that answers when it is let go. Others than these tests get their answers at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions = 0
        self.answers = threading.Event()
        self._known = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._ask)

    def _ask(self, host: Any, *more: Any, **named: Any) -> list[Any]:
        if host not in HANGING.hosts:
            return self._known(host, *more, **named)
        self.questions += 1
        self.answers.wait(60)
        return []

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
    said = f"No name server has given the address of {HANGING.where} within"
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
    assert taken.why.startswith(f"No name server has given the address of {HANGING.where} so far.")


def test_a_preview_tells_of_a_name_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch, hanging: HangingServer
) -> None:
    monkeypatch.setattr(sample, "SAMPLE_S", 0.1)
    monkeypatch.setattr(sample, "_END_S", 60)
    found = sample.sampled(Never(Place("d", "e", None, HANGING)), monotonic())
    assert f"No name server has given the address of {HANGING.where} so far" in found.why


def test_an_unknown_error_of_a_look_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: Any, **__: Any) -> None:
        raise TypeError("no host")

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    with pytest.raises(ConnectorError, match="TypeError: no host"):
        look_up(PUMP, NO_STOP)
