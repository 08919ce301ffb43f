"""The systems whose connectors are measured: each does the work of a connector, in a process of its own."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import psutil

from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.registry import default_registry
from tests.benchmarks.harness import cpu_s_of, wait_for
from tests.benchmarks.peers import node_red
from workers.node.connector_process import ConnectorProcess
from workers.supervisor.services import Kafka

SCHEMA = StreamSchema(
    fields=(Field(name="n", type=FieldType.INTEGER), Field(name="t", type=FieldType.NUMBER))
)


Send = Callable[[int, float], None]
"""Sends so many rows, so many a second (0: as fast as it goes), and returns when the server has them."""
Row = tuple[int, float, float]
"""Its number, when it was made and when it came, in ms since 1970."""
RowOf = Callable[[Any, float], Row | None]


class Connector(Protocol):
    """Its process has started, and does nothing before `run`. `topic`: where its rows are in Kafka. `notes`:
    what it has told that a user should know."""

    topic: str
    notes: list[str]

    def run(self) -> None:
        """Returns when it is connected."""

    def restart(self) -> None:
        """Kills its process, starts it again and orders it to run."""

    def wait_until_connected(self) -> None: ...

    def cpu_s(self) -> float: ...

    def close(self) -> None: ...


class FoglineConnector:
    """A connector's process, as a node starts it."""

    def __init__(self, kafka: KafkaSettings, type: str, params: dict[str, Any], connection: Any) -> None:
        operator, name = default_registry().get(type), uuid4().hex[:8]
        assert issubclass(operator, ConnectorSource | ConnectorSink)
        brings = type.endswith("-in")
        self.notes: list[str] = []
        self._directory = tempfile.TemporaryDirectory(prefix="fogline-bench-")
        self.topic = f"fl.{name}.e.{'intake' if brings else 'out'}"
        self._config = ConnectorConfig(
            kind="in" if brings else "out",
            deployment=name,
            element="e",
            topic=self.topic,
            dead_letters=f"fl.{name}.e.dead",
            connector=operator.connector,
            operator=name_of(operator),
            params={"connection": "c", **params},
            connections={"connection": connection.model_dump(mode="json")},
            group=f"{name}.g",
            rows=SCHEMA,
            kafka_bootstrap=kafka.bootstrap,
            spool=str(Path(self._directory.name, "spool")),
        )
        ensure_topics(kafka, [Topic(self.topic), Topic(self._config.dead_letters, "dead")])
        self._start()
        self._settle()

    def run(self) -> None:
        self._order_to_run()
        self.wait_until_connected()

    def wait_until_connected(self) -> None:
        wait_for(lambda: self.status.state == "connected", f"a connection ({self.status.why})")

    def cpu_s(self) -> float:
        return cpu_s_of([self._child])

    def restart(self) -> None:
        self._process.kill()
        self._start()
        self._order_to_run()

    def close(self) -> None:
        self._process.say(Order(do="stop").model_dump_json())
        self._process.wait(10)
        self._process.kill()
        self._directory.cleanup()

    def _start(self) -> None:
        self.status = ConnectorStatus(element="e")
        before = {child.pid for child in psutil.Process().children()}
        self._process = ConnectorProcess(self._config.model_dump_json(), self._said, lambda: None)
        [self._child] = [each for each in psutil.Process().children() if each.pid not in before]

    def _settle(self) -> None:
        """Waits until it has imported what it needs: that is no CPU of a row."""
        last = -1.0
        while last != (last := self.cpu_s()) or last < 0.2:
            threading.Event().wait(0.5)

    def _order_to_run(self) -> None:
        self._process.say(Order(do="run", epoch=1).model_dump_json())

    def _said(self, status: ConnectorStatus, note: str) -> None:
        self.status = status
        self.notes += [note] if note else []


SYSTEMS: dict[str, Callable[[KafkaSettings, str, dict[str, Any], Any], Connector]] = {
    "fogline": FoglineConnector,
    "node-red": node_red.NodeRed,
}


def can(system: str, type: str) -> bool:
    """Returns whether a system is measured with this type of connector."""
    return system == "fogline" or type in node_red.CAN


@dataclass
class Bench:
    """One connector of one system. `service`: the broker. What is in `open` is closed after it."""

    service: Kafka
    kafka: KafkaSettings
    system: str
    open: ExitStack
    rows: int

    def connector(self, type: str, params: dict[str, Any], connection: Any) -> Connector:
        made = SYSTEMS[self.system](self.kafka, type, params, connection)
        self.open.callback(made.close)
        return made

    def directory(self) -> Path:
        return Path(self.open.enter_context(tempfile.TemporaryDirectory()))


@dataclass
class Incoming:
    """A connector that brings rows in. `send` sends them to it, and `of` knows them in Kafka."""

    connector: Connector
    send: Send
    of: RowOf
    part_of_rows: int = 1
    """It gets one in so many of the rows: a slow server would take minutes."""
