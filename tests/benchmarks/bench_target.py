"""Measures the latencies and the cost of several latency targets: one element alone on a node, at 200
events/s.

    make bench-target            QUICK=1 make bench-target

`map` is a `derive`, `keyed` a keyed processor (`difference`: a row for each row), `join` pairs each row with
itself; 100 keys. Latency: from the timestamp of the event, when it was due to be sent, to when a
`read_committed` consumer in another process has its result; that goes through the broker twice. CPU: of the
process tree of the node, as in bench-node, with what it takes while nothing comes.

TARGETS (ms), KINDS and RATE choose.
"""

from __future__ import annotations

import os
import sys
from time import sleep
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.model.spec import GroupSpec, Pace
from tests.benchmarks import events
from tests.benchmarks.bench_node import batch_count, cpu_ratios, usage
from tests.benchmarks.events import Event, Output
from tests.benchmarks.harness import (
    QUICK,
    Node,
    log,
    machine,
    plan,
    records_of,
    running_node,
    spread,
    start_owner,
    wait_for,
    write_results,
)
from tests.benchmarks.load import load_steadily, observing

RATE = float(os.environ.get("RATE", "200"))
TARGETS_MS = [int(each) for each in os.environ.get("TARGETS", "20 50 100 200 500 1000 2000").split()]
KINDS = os.environ.get("KINDS", "map keyed").split()
IDLE_S, WARM_S, LOAD_S = (4, 15, 16) if QUICK else (20, 40, 60)
ELEMENTS = {
    "map": {
        "type": "derive",
        "params": {"columns": [{"name": "made", "expression": "value * 2"}]},
    },
    "keyed": {"type": "difference", "params": {"column": "value", "name": "made"}},
    "join": {"type": "join", "params": {"left_key": "sensor", "right_key": "sensor", "within_s": 0}},
}
_PORTS = {"join": ("left", "right")}


def spec_of(kind: str, topic: str, target_ms: int) -> GroupSpec:
    source = {"topic": topic, "columns": events.COLUMNS, "key": "sensor"}
    elements: list[dict[str, Any]] = [
        {"id": "input", "type": "kafka-in", "params": source},
        {"id": "element", "inputs": dict.fromkeys(_PORTS.get(kind, ("in",)), "input"), **ELEMENTS[kind]},
    ]
    [spec] = plan(elements, [{"id": "both", "elements": ["input", "element"]}], Pace(latency_ms=target_ms))
    return spec


def expected(kind: str, given: list[Event]) -> list[Output]:
    before: dict[str, float] = {}
    rows = []
    for event in given:
        earlier, before[event.sensor] = before.get(event.sensor), event.value
        data = {"n": event.n, "value": event.value, "state": "running, nominal"}
        made: dict[str, Any]
        match kind:
            case "map":
                made = {"made": event.value * 2}
            case "keyed":
                made = {"made": None if earlier is None else event.value - earlier}
            case _:
                made = {f"right_{name}": value for name, value in data.items()}
        rows.append((event.sensor, {"sensor": event.sensor, **data, **made}))
    return rows


def measure(node: Node, kind: str, target_ms: int) -> dict[str, Any]:
    topic = f"in-{uuid4().hex[:9]}"
    ensure_topics(node.kafka, [Topic(topic)])
    spec = spec_of(kind, topic, target_ms)
    replica = start_owner(node, spec)
    output = spec.outputs[0].topic
    try:
        wait_for(lambda: replica.status().phase == "owning", "the owner", [replica])
        with observing(node.kafka, [output]) as observed:
            load = load_steadily(node.kafka, [topic], RATE, WARM_S + LOAD_S)
            sleep(WARM_S)
            batches = batch_count([replica])
            cpu, kinds = cpu_ratios(node, LOAD_S - 2)
            batches = batch_count([replica]) - batches
            sent, late_s = load.wait()
            wait_for(lambda: replica.status().rows_in_total >= sent, "the last events", [replica])
            sleep(1)
        memory = usage(node, memory=True)
        idle, _ = cpu_ratios(node, IDLE_S)
    finally:
        replica.stop(30)
    last_ms = max(at for at, _ in observed.latencies[output])
    given = [Event(n, record.timestamp) for n, record in enumerate(records_of(node.kafka, topic))]
    verdict = events.judge(expected(kind, given), events.decoded(records_of(node.kafka, output)), "n")
    cores, seconds = sum(cpu) / len(cpu), LOAD_S - 2
    return {
        "kind": kind,
        "target_ms": target_ms,
        "n": len(given),
        "latency_ms": spread(observed.of(output, last_ms - LOAD_S * 1000)),
        "cpu_cores": round(cores, 3),
        "idle_cpu_cores": round(sum(idle) / len(idle), 3),
        "cpu_cores_by_kind": kinds,
        "batches_per_s": round(batches / seconds, 2),
        "cpu_ms_per_batch": round(cores * seconds / batches * 1000, 1),
        "memory_mib": round(memory.memory_mib),
        "load_late_s": round(late_s, 2),
        **vars(verdict),
    }


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    for kind in KINDS:
        cells = [row for row in rows if row["kind"] == kind]
        figure.add_scatter(
            x=[row["latency_ms"]["p50"] for row in cells],
            y=[row["cpu_cores"] for row in cells],
            text=[f"{row['target_ms']} ms" for row in cells],
            name=kind,
        )
    figure.update_layout(
        title=f"What a latency target costs, {RATE:.0f} events/s",
        xaxis_title="latency p50, ms",
        xaxis_type="log",
        yaxis_title="cores",
    )
    return figure


def main() -> None:
    settings = {"machine": machine(), "rate": RATE, "load_s": LOAD_S}
    rows: list[dict[str, Any]] = []
    with running_node() as node:
        for kind in KINDS:
            for target_ms in TARGETS_MS:
                rows.append(measure(node, kind, target_ms))
                log(str(rows[-1]))
                write_results("target", settings, rows, figure_of(rows))
    if any(row[name] for row in rows for name in ("lost", "duplicated", "reordered", "wrong")):
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
