"""Connectors whose system hangs: how each kind is started, and how long it takes until it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from pipeline_runtime.connectors.mqtt import MqttIngester
from pipeline_runtime.connectors.mqtt_out import MqttDeliverer
from pipeline_runtime.connectors.opcua import OpcUaIngester
from pipeline_runtime.connectors.opcua_out import OpcUaDeliverer
from pipeline_runtime.connectors.postgresql_in import PostgresqlIngester
from pipeline_runtime.connectors.postgresql_out import PostgresqlDeliverer
from pipeline_runtime.connectors.sdk import Deliverer, Place
from pipeline_runtime.connectors.trial import RunningDelivery, RunningTrial
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.mqtt import MqttIn, MqttOut
from pipeline_runtime.operators.opcua import OpcUaIn, OpcUaOut
from pipeline_runtime.operators.postgresql import PostgresqlOut
from pipeline_runtime.operators.postgresql_in import PostgresqlIn
from tests.brokers import Broker
from tests.databases import Database
from tests.opcua_servers import PRESS, OpcUaServer
from tests.waiting import wait_until

ROWS = StreamSchema(fields=(Field(name="n", type=FieldType.INTEGER),))
TABLE = "CREATE TABLE {} (n bigint GENERATED ALWAYS AS IDENTITY UNIQUE)"

Running = RunningTrial | RunningDelivery
Kind = Callable[[Any], Running]


@contextmanager
def broker(directory: Path) -> Iterator[Broker]:
    with Broker(directory) as running:
        yield running


@contextmanager
def database(_: Path) -> Iterator[Database]:
    with Database() as running:
        running.ask(TABLE.format("numbers"))
        yield running


@contextmanager
def press(_: Path) -> Iterator[OpcUaServer]:
    with OpcUaServer() as running:
        yield running


def _in(ingester: type[Any], operator: type[Any], **params: Any) -> Kind:
    def start(server: Any) -> Running:
        given = operator.Params.model_validate({"connection": "c", **params})
        return RunningTrial(ingester(Place("d", "e", given, server.connection())))

    return start


def _out(deliverer: type[Deliverer[Any, Any]], operator: type[Any], rows: int, **params: Any) -> Kind:
    """`rows`: how many there are to deliver when the system hangs."""

    def start(server: Any) -> Running:
        given = operator.Params.model_validate({"connection": "c", **params})
        place = Place("d", "e", given, server.connection(), "d.g", ROWS)
        return RunningDelivery(deliverer(place), [{"n": n} for n in range(rows)], ends=False)

    return start


STROKES = f"{PRESS}.Strokes"
TARGET = {"column": "n", "node": STROKES}
NUMBER = {"name": "n", "type": "integer"}
MANY = 1_000_000
KINDS: dict[str, tuple[Any, Kind]] = {
    "mqtt in": (broker, _in(MqttIngester, MqttIn, topics=["a"], columns=[NUMBER])),
    "mqtt out": (broker, _out(MqttDeliverer, MqttOut, MANY, topic="a")),
    "mqtt out without rows": (broker, _out(MqttDeliverer, MqttOut, 1, topic="a")),
    "opcua in": (press, _in(OpcUaIngester, OpcUaIn, columns=[{**NUMBER, "node": STROKES}])),
    "opcua out": (press, _out(OpcUaDeliverer, OpcUaOut, MANY, nodes=[TARGET], late_s=None)),
    "opcua out without rows": (press, _out(OpcUaDeliverer, OpcUaOut, 1, nodes=[TARGET], late_s=None)),
    "postgresql in": (
        database,
        _in(PostgresqlIngester, PostgresqlIn, table="numbers", rising="n", columns=[NUMBER]),
    ),
    "postgresql out": (database, _out(PostgresqlDeliverer, PostgresqlOut, MANY, table="kept", create=True)),
    "postgresql out without rows": (
        database,
        _out(PostgresqlDeliverer, PostgresqlOut, 1, table="kept", create=True),
    ),
}


def told_s(kind: str, directory: Path) -> float:
    """Returns the seconds from when the system hangs until the connector says so, once the connector is
    connected again. What the node then needs until people see it is not part of this."""
    serving, start = KINDS[kind]
    with serving(directory) as server:
        running = start(server)
        wait_until(lambda: running.status.state == "connected", "a connection")
        server.hang()
        hung_s = monotonic()
        try:
            wait_until(lambda: running.status.state == "failing", "the words", look_every_s=0.05)
            took_s = monotonic() - hung_s
        finally:
            server.go_on()
        wait_until(lambda: running.status.state == "connected", "a new connection")
        if isinstance(running, RunningTrial):
            running.stop()
        else:
            running.taken_within(0)
    return took_s
