"""The message of each connector about a server that never answers, or that speaks another protocol."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from pipeline_runtime.connectors import http_browse, modbus, mqtt_topics, opcua_browse, postgresql_tables
from pipeline_runtime.connectors.sdk import ConnectorError, Probed
from pipeline_runtime.operators.http import HttpConnection
from pipeline_runtime.operators.modbus import ModbusConnection
from pipeline_runtime.operators.mqtt import MqttConnection
from pipeline_runtime.operators.opcua import OpcUaConnection
from pipeline_runtime.operators.postgresql import PostgresqlConnection
from tests.chosen import chosen
from tests.ports import free_ports

pytestmark = pytest.mark.integration

FLOOD_BYTES = 10_000_000
DATABASE = {"database": "d", "user": "u"}
KINDS: dict[str, tuple[Callable[[Any, str], Probed], type[Any], dict[str, Any]]] = {
    "mqtt": (mqtt_topics.probe, MqttConnection, {}),
    "opcua": (opcua_browse.probe, OpcUaConnection, {}),
    "modbus": (modbus.probe, ModbusConnection, {}),
    "http": (http_browse.probe, HttpConnection, {"tls": False}),
    "https": (http_browse.probe, HttpConnection, {"tls": True}),
    "postgresql": (postgresql_tables.probe, PostgresqlConnection, DATABASE),
}


def why(kind: str, port: int) -> str:
    """What a probe says."""
    probe, connection, fields = KINDS[kind]
    with pytest.raises(ConnectorError) as caught:
        probe(connection.model_validate({"host": "127.0.0.1", "port": port, **fields}), "")
    return str(caught.value)


@contextmanager
def flooding() -> Iterator[int]:
    """Sends each client 10 MB that no protocol has, and reads what the client sends. Yields its port."""
    with socket.create_server(("127.0.0.1", free_ports(1)[0])) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=flood, args=(client,), daemon=True).start()

        def flood(client: socket.socket) -> None:
            with client, suppress(OSError):
                client.sendall(b"\x00\xff no protocol \r\n" * (FLOOD_BYTES // 16))
                while client.recv(65_536):
                    pass

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)  # ends accept


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_speaks_something_else_is_told_in_words(kind: str) -> None:
    with flooding() as port:
        said = why(kind, port)
    assert f"127.0.0.1, port {port}" in said
    # Words of a person, and none of the library.
    assert not any(word in said for word in ("Traceback", "Error:", "Exception", "b'"))


@pytest.mark.parametrize("kind", chosen(KINDS, always=["http"]))
def test_a_server_that_takes_connections_and_never_answers_is_told_in_words(kind: str) -> None:
    with socket.create_server(("127.0.0.1", free_ports(1)[0])) as silent:
        said = why(kind, silent.getsockname()[1])
    assert "answer" in said
