"""Connectors, each as the process that a node starts, between a real Kafka and its real server; in turns with
Node-RED, which does the same work on the same Kafka, each with a server of its own.

    make bench-connectors                QUICK=1 make bench-connectors
    ONLY="mqtt-in faults" SYSTEMS="fogline node-red" make bench-connectors

In: a process of its own sends rows as fast as the server takes them. Then it sends them at half that rate,
and each row's way from there to a reader of Kafka is timed. Out: the rows wait in the element's stream. Then
they are written at half the rate, and each row's way from there to its receiver is timed.

    mqtt-in, mqtt-out     mosquitto, QoS 1
    opcua-in              asyncua's server, whose own speed is the limit
    modbus-in             pymodbus's server, polled every 10 ms; the time begins with the poll (Node-RED: with
                          its answer)
    http-in, http-out     100 rows in a request
    postgresql-out        a table without keys; the time ends with the insert, before the commit
    faults                mqtt-in and http-in while something is killed: connector_faults.py

The log says rows/s, the connector's CPU for each row, and the times. Where nothing is killed, a row that is
missing or comes twice is an error. With faults, the rows that are lost or come twice are counted, and a row
that Fogline loses is an error. All run on this machine together, so the CPU for each row says more than the
rows/s.

Node-RED has no part in http-out and postgresql-out. How it is tuned: peers/node_red.py.
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
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, time
from typing import Any

import httpx
import plotly.graph_objects as go

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.kafka.peek import newest_offsets
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.operators.http import HttpConnection, WebhookConnection
from tests.benchmarks.bench_throughput import bars
from tests.benchmarks.connector_faults import AWAY_S, FAULT_ROWS, FAULTS, measure_with_fault
from tests.benchmarks.connector_loads import (
    AT_ONCE,
    made,
    paced,
    receive_http,
    send_http,
    send_mqtt,
    send_opcua,
)
from tests.benchmarks.connector_systems import SYSTEMS, Bench, Connector, Incoming, Row, RowOf, Send, can
from tests.benchmarks.harness import QUICK, log, machine, spread, wait_for, write_results
from tests.brokers import Broker
from tests.databases import Database
from tests.modbus_devices import Device
from tests.opcua_servers import PRESS, OpcUaServer
from tests.ports import free_ports
from workers.supervisor.services import Kafka

ROWS = int(os.environ.get("ROWS", "10000" if QUICK else "60000"))
TIMED_S = 3 if QUICK else 10
ONLY = os.environ.get("ONLY", "").split()
TOKEN = "a-token-of-the-benchmark"
COLUMNS = [{"name": "n", "type": "integer"}, {"name": "t", "type": "number"}]


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


def end_of(bench: Bench, connector: Connector) -> int:
    return newest_offsets(bench.kafka, connector.topic, 1)[0][1]


def measure_in(bench: Bench, incoming: Incoming) -> dict[str, Any]:
    kafka, rows, send, of = bench.kafka, bench.rows // incoming.part_of_rows, incoming.send, incoming.of
    connector, topic = incoming.connector, incoming.connector.topic
    connector.run()

    def end() -> int:
        return end_of(bench, connector)

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


def measure_out(bench: Bench, connector: Connector, received: Callable[[], list[Row]]) -> dict[str, Any]:
    kafka, rows = bench.kafka, bench.rows
    transactions = Transactions(kafka, f"{connector.topic}.1")
    transactions.initialise()

    def write(numbers: range) -> None:
        records = [json.dumps(made(n)).encode() for n in numbers]
        transactions.commit([OutgoingRecord(connector.topic, each) for each in records])

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


def measure_polls(bench: Bench, connector: Connector) -> dict[str, Any]:
    """Rows come by the clock, so the rate says only whether it keeps up."""
    connector.run()
    wait_for(lambda: end_of(bench, connector) > 0, "the first poll")
    first, cpu_s, began_s = end_of(bench, connector), connector.cpu_s(), monotonic()
    arrivals = Arrivals(bench.kafka, connector.topic, first, lambda each, now_ms: (0, each.timestamp, now_ms))
    threading.Event().wait(TIMED_S)
    rows, passed_s = end_of(bench, connector) - first, monotonic() - began_s
    cpu_us = (connector.cpu_s() - cpu_s) / rows * 1e6
    arrivals.close()
    return told(rows, rows / passed_s, cpu_us, arrivals.rows)


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


def mqtt_in(bench: Bench) -> Incoming:
    broker = bench.open.enter_context(Broker(bench.directory()))
    params = {"topics": ["bench/#"], "columns": COLUMNS}
    connector = bench.connector("mqtt-in", params, broker.connection())
    send = _elsewhere(send_mqtt, broker.port)
    return Incoming(connector, send, lambda each, at: _row(json.loads(each.value)["value"], at))


def opcua_in(bench: Bench) -> Incoming:
    server = bench.open.enter_context(OpcUaServer())
    columns = [{"name": "n", "node": f"{PRESS}.Strokes", "type": "integer"}]
    columns.append({"name": "t", "node": f"{PRESS}.Temperature", "type": "number"})
    params = {"columns": columns, "publish_ms": 50, "sample_ms": 1}
    connector = bench.connector("opcua-in", params, server.connection())

    def of(record: Any, now_ms: float) -> Row | None:
        values = json.loads(record.value)["values"]
        # As it connects, it gets each value as it is.
        if values.get("n") is None or (values.get("t") or 0) < 1e6:
            return None
        return _row({"n": values["n"] - 1, "t": values["t"]}, now_ms)

    return Incoming(connector, _elsewhere(send_opcua, server.port), of, part_of_rows=20)


def modbus_in(bench: Bench) -> dict[str, Any]:
    device = bench.open.enter_context(Device())
    registers = [{"name": f"r{n}", "address": n} for n in range(50)]
    params = {"every_ms": 10, "registers": registers}
    return measure_polls(bench, bench.connector("modbus-in", params, device.connection()))


def http_in(bench: Bench) -> Incoming:
    [port] = free_ports(1)
    params = {"port": port, "address": "127.0.0.1", "path": "/rows", "columns": COLUMNS}
    connection = WebhookConnection.model_validate({"token": TOKEN})
    connector = bench.connector("http-in", params, connection)
    send = _elsewhere(send_http, port, TOKEN)
    return Incoming(connector, send, lambda each, at: _row(json.loads(each.value), at))


def mqtt_out(bench: Bench) -> dict[str, Any]:
    broker = bench.open.enter_context(Broker(bench.directory()))
    got: list[Row] = []
    client = broker.client(lambda _, payload: got.append(_row(json.loads(payload), time() * 1000)), "bench")
    bench.open.callback(client.loop_stop)
    params = {"topic": "bench"}
    connector = bench.connector("mqtt-out", params, broker.connection())
    return measure_out(bench, connector, lambda: list(got))


def http_out(bench: Bench) -> dict[str, Any]:
    [port] = free_ports(1)
    receiver = multiprocessing.get_context("spawn").Process(target=receive_http, args=(port,), daemon=True)
    receiver.start()
    bench.open.callback(receiver.kill)

    def received() -> list[Row]:
        threading.Event().wait(0.2)  # an answer holds all rows, and so takes CPU
        answer = httpx.get(f"http://127.0.0.1:{port}", trust_env=False, timeout=60)
        return [(n, made_ms, came_ms) for n, made_ms, came_ms in answer.json()]

    wait_for(lambda: _answers(port), "the receiver to answer")
    connection = HttpConnection.model_validate({"host": "127.0.0.1", "port": port, "tls": False})
    params = {"body": "rows", "rows_max": AT_ONCE}
    connector = bench.connector("http-out", params, connection)
    return measure_out(bench, connector, received)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def postgresql_out(bench: Bench) -> dict[str, Any]:
    database = bench.open.enter_context(Database())
    database.ask(
        "CREATE TABLE bench (n bigint, t double precision, at timestamptz DEFAULT clock_timestamp())"
    )

    def received() -> list[Row]:
        threading.Event().wait(0.1)
        found = database.ask("SELECT n, t, extract(epoch FROM at) * 1000 FROM bench ORDER BY at")
        return [(int(n), float(made_ms), float(came_ms)) for n, made_ms, came_ms in found]

    params = {"table": "bench"}
    connector = bench.connector("postgresql-out", params, database.connection())
    return measure_out(bench, connector, received)


INCOMING = {"mqtt-in": mqtt_in, "opcua-in": opcua_in, "http-in": http_in}
OTHERS = {
    "modbus-in": modbus_in,
    "mqtt-out": mqtt_out,
    "http-out": http_out,
    "postgresql-out": postgresql_out,
}
WITH_FAULTS = ("mqtt-in", "http-in")


def undisturbed(bench: Bench, type: str) -> dict[str, Any]:
    return measure_in(bench, INCOMING[type](bench)) if type in INCOMING else OTHERS[type](bench)


def runs(parts: list[str], systems: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yields connector, fault and system: the systems take turns."""
    for type in (*INCOMING, *OTHERS):
        for fault in ("", *(FAULTS if type in WITH_FAULTS else ())):
            if not parts or (type in parts and not fault) or ("faults" in parts and fault):
                yield from ((type, fault, system) for system in systems if can(system, type))


def measured(bench: Bench, type: str, fault: str) -> dict[str, Any]:
    """A run of another system that fails is told; Fogline's ends the benchmark."""
    try:
        with bench.open:
            if fault:
                return measure_with_fault(bench, INCOMING[type](bench), fault)
            return undisturbed(bench, type)
    except Exception as error:
        if bench.system == "fogline":
            raise
        return {"failed": f"{error.__class__.__name__}: {error}"[:500]}


def main() -> int | str:
    found: list[dict[str, Any]] = []
    systems = os.environ.get("SYSTEMS", " ".join(SYSTEMS)).split()
    settings = {"machine": machine(), "rows": ROWS, "rows_with_faults": FAULT_ROWS, "away_s": AWAY_S}
    port, controller_port = free_ports(2)
    with (
        tempfile.TemporaryDirectory(prefix="fogline-bench-") as name,
        Kafka(Path(name, "kafka"), port, controller_port) as service,
    ):
        for type, fault, system in runs(ONLY, systems):
            bench = Bench(service, KafkaSettings(service.bootstrap), system, ExitStack(), ROWS)
            row = {"connector": type, "system": system, "fault": fault or "none"}
            found.append(row | measured(bench, type, fault))
            log("  ".join(f"{key} {value}" for key, value in found[-1].items()))
    write_results("connectors", settings, found, figure_of(found))
    lost = [row for row in found if row["system"] == "fogline" and row.get("lost")]
    return f"FAILED: Fogline has lost rows: {lost}" if lost else 0


def figure_of(found: list[dict[str, Any]]) -> go.Figure:
    timed = [row for row in found if "cpu_us_per_row" in row]
    return bars(
        {
            system: {row["connector"]: row["cpu_us_per_row"] for row in timed if row["system"] == system}
            for system in dict.fromkeys(row["system"] for row in timed)
        }
    )


if __name__ == "__main__":
    sys.exit(main())
