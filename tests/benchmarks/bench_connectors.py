"""Connectors, each as the process that a node starts, between a real Kafka and its real server.

    make bench-connectors                QUICK=1 make bench-connectors

In: a process of its own sends rows as fast as the server takes them. Then it sends them at half that rate,
and each row's way from there to a reader of Kafka is timed. Out: the rows wait in the element's stream. Then
they are written at half the rate, and each row's way from there to its receiver is timed.

    mqtt-in, mqtt-out     mosquitto, QoS 1
    opcua-in              asyncua's server, whose own speed is the limit
    modbus-in             pymodbus's server, polled every 10 ms; the time begins with the poll
    http-in, http-out     100 rows in a request
    postgresql-out        a table without keys; the time ends with the insert, before the commit

The log says rows/s, the connector's CPU for each row, and the times. A row that is missing or comes twice
ends the run with an error: nothing fails here, so nothing is repeated. All run on this machine together, so
the CPU for each row says more than the rows/s.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, time
from typing import Any
from uuid import uuid4

import httpx
import plotly.graph_objects as go
import psutil

from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.kafka.peek import newest_offsets
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.http import HttpConnection, WebhookConnection
from pipeline_runtime.operators.registry import default_registry
from tests.benchmarks.connector_loads import (
    AT_ONCE,
    made,
    paced,
    receive_http,
    send_http,
    send_mqtt,
    send_opcua,
)
from tests.benchmarks.harness import QUICK, cpu_s_of, log, machine, spread, wait_for, write_results
from tests.brokers import Broker
from tests.databases import Database
from tests.modbus_devices import Device
from tests.opcua_servers import PRESS, OpcUaServer
from tests.ports import free_ports
from workers.node.connector_process import ConnectorProcess
from workers.supervisor.services import Kafka

ROWS = int(os.environ.get("ROWS", "10000" if QUICK else "100000"))
TIMED_S = 3 if QUICK else 20
ONLY = os.environ.get("ONLY", "").split()
TOKEN = "a-token-of-the-benchmark"
COLUMNS = [{"name": "n", "type": "integer"}, {"name": "t", "type": "number"}]
SCHEMA = StreamSchema(
    fields=(Field(name="n", type=FieldType.INTEGER), Field(name="t", type=FieldType.NUMBER))
)
Send = Callable[[int, float], None]
"""Sends so many rows, so many a second (0: as fast as it goes), and returns when the server has them."""
Row = tuple[int, float, float]
"""Its number, when it was made and when it came, in ms since 1970."""
RowOf = Callable[[Any, float], Row | None]


class Connector:
    """Its process, ready to run."""

    def __init__(self, kafka: KafkaSettings, type: str, params: dict[str, Any], connection: Any) -> None:
        operator, name = default_registry().get(type), uuid4().hex[:8]
        assert issubclass(operator, ConnectorSource | ConnectorSink)
        brings = type.endswith("-in")
        self.status = ConnectorStatus(element="e")
        self.notes: list[str] = []
        self._directory = tempfile.TemporaryDirectory(prefix="fogline-bench-")
        self.config = ConnectorConfig(
            kind="in" if brings else "out",
            deployment=name,
            element="e",
            topic=f"fl.{name}.e.{'intake' if brings else 'out'}",
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
        ensure_topics(kafka, [Topic(self.config.topic), Topic(self.config.dead_letters, "dead")])
        before = {child.pid for child in psutil.Process().children()}
        self._process = ConnectorProcess(self.config.model_dump_json(), self._said, lambda: None)
        [self._child] = [each for each in psutil.Process().children() if each.pid not in before]
        self._settle()

    def run(self) -> None:
        self._process.say(Order(do="run", epoch=1).model_dump_json())
        wait_for(lambda: self.status.state == "connected", f"a connection ({self.status.why})")

    def cpu_s(self) -> float:
        return cpu_s_of([self._child])

    def close(self) -> None:
        self._process.say(Order(do="stop").model_dump_json())
        self._process.wait(10)
        self._process.kill()
        self._directory.cleanup()

    def _said(self, status: ConnectorStatus, note: str) -> None:
        self.status = status
        self.notes += [note] if note else []

    def _settle(self) -> None:
        """Waits until it has imported what it needs: that is no CPU of a row."""
        last = -1.0
        while last != (last := self.cpu_s()) or last < 0.2:
            threading.Event().wait(0.5)


class Arrivals:
    """Reads the element's topic in a thread. `of` gives the row of a record that came at that time, in ms."""

    def __init__(self, kafka: KafkaSettings, topic: str, first: int, of: RowOf) -> None:
        self.rows: list[Row] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(kafka, topic, first, of), daemon=True)
        self._thread.start()

    def _read(self, kafka: KafkaSettings, topic: str, first: int, of: RowOf) -> None:
        consumer = open_consumer(kafka, max_poll_records=5_000, fetch_max_wait_ms=20)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), first)
        while not self._closing.is_set():
            for records in consumer.poll(100).values():
                now_ms = time() * 1000
                self.rows += [row for each in records if (row := of(each, now_ms)) is not None]
        consumer.close()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()


def measure_in(
    kafka: KafkaSettings, connector: Connector, send: Send, rows: int, of: RowOf
) -> dict[str, Any]:
    topic = connector.config.topic
    connector.run()

    def end() -> int:
        return newest_offsets(kafka, topic, 1)[0][1]

    first, cpu_s = end(), connector.cpu_s()
    send(rows, 0.0)
    wait_for(lambda: end() - first >= rows, f"{rows} rows")
    ended_ms = time() * 1000
    cpu_us = (connector.cpu_s() - cpu_s) / rows * 1e6
    # From when the first row was made: before it, its sender's process was started.
    whole = Arrivals(kafka, topic, first, of)
    wait_for(lambda: len(whole.rows) >= rows, "the rows to be read")
    whole.close()
    check(whole.rows, rows)
    per_s = rows / (ended_ms - min(made_ms for _, made_ms, _ in whole.rows)) * 1000
    timed = int(TIMED_S * per_s / 2)
    arrivals = Arrivals(kafka, topic, end(), of)
    send(timed, per_s / 2)
    wait_for(lambda: len(arrivals.rows) >= timed, "the timed rows")
    arrivals.close()
    assert not connector.notes, connector.notes
    check(arrivals.rows, timed)
    return told(rows, per_s, cpu_us, arrivals.rows)


def measure_out(
    kafka: KafkaSettings, connector: Connector, received: Callable[[], list[Row]], rows: int
) -> dict[str, Any]:
    transactions = Transactions(kafka, f"{connector.config.topic}.1")
    transactions.initialise()

    def write(numbers: range) -> None:
        records = [json.dumps(made(n)).encode() for n in numbers]
        transactions.commit([OutgoingRecord(connector.config.topic, each) for each in records])

    for numbers in paced(rows, 0.0, 1_000):
        write(numbers)
    cpu_s = connector.cpu_s()
    connector.run()
    wait_for(lambda: len(received()) >= rows, f"{rows} rows")
    cpu_us = (connector.cpu_s() - cpu_s) / rows * 1e6
    check(received(), rows)
    came_ms = [each for _, _, each in received()]
    per_s = rows / (max(came_ms) - min(came_ms)) * 1000
    timed = int(TIMED_S * per_s / 2)
    for numbers in paced(timed, per_s / 2, max(1, int(per_s / 100))):  # 50 transactions a second
        write(numbers)
    wait_for(lambda: len(received()) >= rows + timed, "the timed rows")
    transactions.close()
    check(received()[rows:], timed)
    return told(rows, per_s, cpu_us, received()[rows:])


def measure_polls(kafka: KafkaSettings, connector: Connector) -> dict[str, Any]:
    """Rows come by the clock, so the rate says only whether it keeps up."""
    cpu_s = connector.cpu_s()
    connector.run()
    began_s = monotonic()
    arrivals = Arrivals(kafka, connector.config.topic, 0, lambda each, now_ms: (0, each.timestamp, now_ms))
    threading.Event().wait(TIMED_S)
    per_s = len(arrivals.rows) / (monotonic() - began_s)
    rows = connector.status.rows_total or 1
    cpu_us = (connector.cpu_s() - cpu_s) / rows * 1e6
    arrivals.close()
    return told(rows, per_s, cpu_us, arrivals.rows)


def check(found: list[Row], rows: int) -> None:
    """Raises AssertionError if a row is missing or has come twice."""
    assert sorted(n for n, _, _ in found) == list(range(rows)), f"{rows} rows were sent, {len(found)} came"


def told(rows: int, per_s: float, cpu_us: float, timed: list[Row]) -> dict[str, Any]:
    times_ms = [came_ms - made_ms for _, made_ms, came_ms in timed]
    return {
        "rows": rows,
        "rows_per_s": round(per_s),
        "cpu_us_per_row": round(cpu_us, 1),
        **{f"latency_ms_{name}": value for name, value in spread(times_ms).items()},
    }


def _elsewhere(target: Callable[..., None], *given: Any) -> Send:
    """Runs in a process of its own."""

    def send(rows: int, per_s: float) -> None:
        process = multiprocessing.get_context("spawn").Process(target=target, args=(*given, rows, per_s))
        process.start()
        process.join()
        assert process.exitcode == 0

    return send


def _row(found: dict[str, Any], now_ms: float) -> Row:
    return int(found["n"]), found["t"], now_ms


@contextmanager
def _connector(*given: Any) -> Iterator[Connector]:
    connector = Connector(*given)
    try:
        yield connector
    finally:
        connector.close()


def mqtt_in(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    broker = open.enter_context(Broker(Path(open.enter_context(tempfile.TemporaryDirectory()))))
    params = {"topics": ["bench/#"], "columns": COLUMNS}
    connector = open.enter_context(_connector(kafka, "mqtt-in", params, broker.connection()))
    send = _elsewhere(send_mqtt, broker.port)
    return measure_in(
        kafka, connector, send, rows, lambda each, at: _row(json.loads(each.value)["value"], at)
    )


def opcua_in(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    server = open.enter_context(OpcUaServer())
    columns = [{"name": "n", "node": f"{PRESS}.Strokes", "type": "integer"}]
    columns.append({"name": "t", "node": f"{PRESS}.Temperature", "type": "number"})
    params = {"columns": columns, "publish_ms": 50, "sample_ms": 1}
    connector = open.enter_context(_connector(kafka, "opcua-in", params, server.connection()))

    def of(record: Any, now_ms: float) -> Row | None:
        values = json.loads(record.value)["values"]
        # As it connects, it gets each value as it is.
        if values.get("n") is None or (values.get("t") or 0) < 1e6:
            return None
        return _row({"n": values["n"] - 1, "t": values["t"]}, now_ms)

    return measure_in(kafka, connector, _elsewhere(send_opcua, server.port), rows // 20, of)


def modbus_in(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    device = open.enter_context(Device())
    registers = [{"name": f"r{n}", "address": n} for n in range(50)]
    params = {"every_ms": 10, "registers": registers}
    return measure_polls(
        kafka, open.enter_context(_connector(kafka, "modbus-in", params, device.connection()))
    )


def http_in(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    [port] = free_ports(1)
    params = {"port": port, "address": "127.0.0.1", "path": "/rows", "columns": COLUMNS}
    connection = WebhookConnection.model_validate({"token": TOKEN})
    connector = open.enter_context(_connector(kafka, "http-in", params, connection))
    send = _elsewhere(send_http, port, TOKEN)
    return measure_in(kafka, connector, send, rows, lambda each, at: _row(json.loads(each.value), at))


def mqtt_out(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    broker = open.enter_context(Broker(Path(open.enter_context(tempfile.TemporaryDirectory()))))
    got: list[Row] = []
    client = broker.client(lambda _, payload: got.append(_row(json.loads(payload), time() * 1000)), "bench")
    open.callback(client.loop_stop)
    params = {"topic": "bench"}
    connector = open.enter_context(_connector(kafka, "mqtt-out", params, broker.connection()))
    return measure_out(kafka, connector, lambda: list(got), rows)


def http_out(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    [port] = free_ports(1)
    receiver = multiprocessing.get_context("spawn").Process(target=receive_http, args=(port,), daemon=True)
    receiver.start()
    open.callback(receiver.kill)

    def received() -> list[Row]:
        threading.Event().wait(0.2)  # an answer holds all rows, and so takes CPU
        answer = httpx.get(f"http://127.0.0.1:{port}", trust_env=False, timeout=60)
        return [(n, made_ms, came_ms) for n, made_ms, came_ms in answer.json()]

    wait_for(lambda: _answers(port), "the receiver to answer")
    connection = HttpConnection.model_validate({"host": "127.0.0.1", "port": port, "tls": False})
    params = {"body": "rows", "rows_max": AT_ONCE}
    connector = open.enter_context(_connector(kafka, "http-out", params, connection))
    return measure_out(kafka, connector, received, rows)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def postgresql_out(kafka: KafkaSettings, open: ExitStack, rows: int) -> dict[str, Any]:
    database = open.enter_context(Database())
    database.ask(
        "CREATE TABLE bench (n bigint, t double precision, at timestamptz DEFAULT clock_timestamp())"
    )

    def received() -> list[Row]:
        threading.Event().wait(0.1)
        found = database.ask("SELECT n, t, extract(epoch FROM at) * 1000 FROM bench ORDER BY at")
        return [(int(n), float(made_ms), float(came_ms)) for n, made_ms, came_ms in found]

    params = {"table": "bench"}
    connector = open.enter_context(_connector(kafka, "postgresql-out", params, database.connection()))
    return measure_out(kafka, connector, received, rows)


WORKS = (mqtt_in, opcua_in, modbus_in, http_in, mqtt_out, http_out, postgresql_out)


def main() -> int:
    found: list[dict[str, Any]] = []
    settings = {"machine": machine(), "rows": ROWS}
    port, controller_port = free_ports(2)
    with (
        tempfile.TemporaryDirectory(prefix="fogline-bench-") as name,
        Kafka(Path(name, "kafka"), port, controller_port) as service,
    ):
        kafka = KafkaSettings(service.bootstrap)
        for work in WORKS:
            connector = work.__name__.replace("_", "-")
            if ONLY and connector not in ONLY:
                continue
            with ExitStack() as open:
                found.append({"connector": connector, **work(kafka, open, ROWS)})
            log("  ".join(f"{key} {value}" for key, value in found[-1].items()))
    names = [each["connector"] for each in found]
    bars = go.Bar(x=names, y=[each["cpu_us_per_row"] for each in found], name="CPU for each row, µs")
    write_results("connectors", settings, found, go.Figure(bars))
    return 0


if __name__ == "__main__":
    sys.exit(main())
