"""Measures the CPU and memory that elements take on a node: idle, and at 100 events/s each; each as a group
of its own, or all as one group.

    make bench-node            QUICK=1 make bench-node

n `derive` elements in a chain behind a topic. Apart, each is a group: a query, a journal and an output
topic of its own. As one group they are one query. CPU and memory are those of the node's process tree:
the agent's Python (here: this process), the JVM, Spark's Python processes; not the broker's, the load's or
the observer's.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go
import psutil
from plotly.subplots import make_subplots

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.model.spec import GroupSpec, Pace
from pipeline_runtime.replica.replica import Replica
from tests.benchmarks import events
from tests.benchmarks.events import EPOCH_MS, Event, Output, Verdict
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

RATE = 100.0
TARGET_MS = int(os.environ.get("TARGET_MS", "20"))  # the latency target of each
LAYOUTS = os.environ.get("LAYOUTS", "apart,one group").split(",")
COUNTS = tuple(int(n) for n in os.environ.get("COUNTS", "1 5 10").split())
SETTLE_S = 5 if QUICK else 15
WINDOW_S = 2.0  # CPU is measured over windows of this length
IDLE_S = 8 if QUICK else 40
LOAD_WARM_S = 8 if QUICK else 20
LOAD_S = 12 if QUICK else 60
DRAIN_S = 20.0  # what came in must be out so long after the load has ended, or it does not keep up


@dataclass(frozen=True)
class Usage:
    cpu_s: float
    cpu_by_kind: dict[str, float]
    memory_mib: float
    memory_by_kind: dict[str, float]
    processes: int


def usage(node: Node, *, memory: bool = False) -> Usage:
    """Returns the use of the node's process tree. Memory is the proportional set size: shared pages count
    once."""
    cpu: dict[str, float] = {}
    mib: dict[str, float] = {}
    processes = node.processes()
    for process in processes:
        try:
            kind = _kind(process)
            times = process.cpu_times()
            cpu[kind] = cpu.get(kind, 0.0) + times.user + times.system
            if memory:
                mib[kind] = mib.get(kind, 0.0) + process.memory_full_info().pss / 2**20
        except psutil.NoSuchProcess:
            continue
    return Usage(sum(cpu.values()), cpu, sum(mib.values()), mib, len(processes))


def _kind(process: psutil.Process) -> str:
    if process.pid == psutil.Process().pid:
        return "agent"
    return "jvm" if process.name() == "java" else "python"


def cpu_ratios(node: Node, seconds: float) -> tuple[list[float], dict[str, float]]:
    """Cores used in each window of `seconds`, and over all of it by kind of process."""
    ratios: list[float] = []
    begin, first = monotonic(), usage(node)
    before, at = first, begin
    while monotonic() - begin < seconds:
        sleep(WINDOW_S)
        now, after = monotonic(), usage(node)
        ratios.append((after.cpu_s - before.cpu_s) / (now - at))
        before, at = after, now
    kinds = {
        kind: round((value - first.cpu_by_kind.get(kind, 0.0)) / (at - begin), 4)
        for kind, value in before.cpu_by_kind.items()
    }
    return ratios, kinds


def chain(topic: str, count: int, layout: str) -> tuple[GroupSpec, ...]:
    """input -> e1 -> ... -> e<count>, each of which adds one number to the events."""
    source = {"topic": topic, "columns": events.COLUMNS, "key": "sensor"}
    elements: list[dict[str, Any]] = [{"id": "input", "type": "kafka-in", "params": source}]
    for number in range(1, count + 1):
        params = {"columns": [{"name": f"c{number}", "expression": f"value * {number}"}]}
        before = elements[-1]["id"]
        elements.append({"id": f"e{number}", "type": "derive", "inputs": {"in": before}, "params": params})
    names = [element["id"] for element in elements]
    together = names if layout == "one group" else names[:2]
    return plan(elements, [{"id": "first", "elements": together}], Pace(latency_ms=TARGET_MS))


def expected(given: list[Event], count: int) -> list[Output]:
    return [
        (
            event.sensor,
            {
                "sensor": event.sensor,
                "n": event.n,
                "value": event.value,
                "state": "running, nominal",
                **{f"c{number}": event.value * number for number in range(1, count + 1)},
            },
        )
        for event in given
    ]


def measure(node: Node, count: int, layout: str, empty_mib: float) -> dict[str, Any]:
    topic = f"in-{uuid4().hex[:9]}"
    ensure_topics(node.kafka, [Topic(topic)])
    specs = chain(topic, count, layout)
    replicas = [start_owner(node, spec) for spec in specs]
    try:
        wait_for(lambda: all(replica.status().phase == "owning" for replica in replicas), "owners", replicas)
        # One batch through all of it: what is loaded at the first use is not the price of being idle.
        sent = warm_up(node, topic, replicas)
        sleep(SETTLE_S)
        idle, idle_kinds = cpu_ratios(node, IDLE_S)
        row = {
            "elements": count,
            "layout": layout,
            "queries": len(specs),
            "n": len(idle),
            "idle_cpu_cores": spread(idle),
            "idle_cpu_cores_mean": round(sum(idle) / len(idle), 4),
            "idle_cpu_cores_by_kind": idle_kinds,
        }
        row |= under_load(node, topic, specs, replicas, sent)
        full = usage(node, memory=True)
        row |= {
            "memory_mib": round(full.memory_mib),
            "memory_mib_by_kind": {kind: round(value) for kind, value in full.memory_by_kind.items()},
            "memory_mib_per_element": round((full.memory_mib - empty_mib) / count, 1),
            "processes": full.processes,
        }
    finally:
        for replica in replicas:
            replica.stop(30)
    given = [Event(n, record.timestamp) for n, record in enumerate(records_of(node.kafka, topic))]
    verdict = judged(node, specs[-1], given, count)
    return {**row, **vars(verdict)}


def judged(node: Node, last: GroupSpec, given: list[Event], count: int) -> Verdict:
    got = events.decoded(records_of(node.kafka, last.outputs[0].topic))
    return events.judge(expected(given, count), got, "n")


def warm_up(node: Node, topic: str, replicas: list[Replica]) -> int:
    """One second of load, until it is through; returns the number of events."""
    sent, _ = load_steadily(node.kafka, [topic], RATE, 1.0).wait()
    last = replicas[-1]
    wait_for(
        lambda: last.status().rows_in_total >= sent, "the first events at the end of the chain", replicas
    )
    return sent


def under_load(
    node: Node, topic: str, specs: tuple[GroupSpec, ...], replicas: list[Replica], before: int
) -> dict[str, Any]:
    output = specs[-1].outputs[0].topic
    with observing(node.kafka, [output]) as observed:
        load = load_steadily(node.kafka, [topic], RATE, LOAD_WARM_S + LOAD_S, first=before)
        sleep(LOAD_WARM_S)
        batches, batch_at = batch_count(replicas), monotonic()
        cpu, kinds = cpu_ratios(node, LOAD_S - 2)
        batches, batch_s = batch_count(replicas) - batches, monotonic() - batch_at
        sent, late_s = load.wait()
        ended = monotonic()
        last = replicas[-1]
        wait_for(lambda: last.status().rows_in_total >= before + sent, "the last events", replicas)
        drain_s = monotonic() - ended
    stamps = [at for at, _ in observed.latencies[output]]
    values = observed.of(output, max(stamps) - LOAD_S * 1000)
    statuses = [replica.status() for replica in replicas]
    batch_cpu_ms = sum(cpu) / len(cpu) * batch_s / batches * 1000
    return {
        "events_per_s": RATE,
        "cpu_cores": spread(cpu),
        "cpu_cores_by_kind": kinds,
        "batches_per_s": round(batches / batch_s, 2),
        "cpu_ms_per_batch": round(batch_cpu_ms, 1),
        "batch_ms": spread(value for status in statuses if (value := status.batch_ms_p50) is not None),
        "latency_ms": spread(values),
        "drain_s": round(drain_s, 2),
        "keeps_up": drain_s < DRAIN_S and late_s < 1.0,
    }


def batch_count(replicas: list[Replica]) -> int:
    return sum(replica.status().seq for replica in replicas)


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    measures = (
        ("idle_cpu_cores", "cores, idle"),
        ("cpu_cores", f"cores, {RATE:.0f} events/s"),
        ("latency_ms", "latency p50, ms"),
        ("memory_mib", "memory, MiB"),
    )
    figure = make_subplots(rows=2, cols=2, subplot_titles=[title for _, title in measures])
    for place, (name, _) in enumerate(measures):
        for layout in ("apart", "one group"):
            cells = [row for row in rows if row["layout"] == layout]
            values = [cell[name]["p50"] if isinstance(cell[name], dict) else cell[name] for cell in cells]
            figure.add_scatter(
                x=[cell["elements"] for cell in cells],
                y=values,
                name=layout,
                legendgroup=layout,
                showlegend=place == 0,
                line_color="#0b6e69" if layout == "apart" else "#b45309",
                row=place // 2 + 1,
                col=place % 2 + 1,
            )
    figure.update_layout(title="Elements on one node, by their number")
    return figure


def main() -> None:
    began = machine()
    rows: list[dict[str, Any]] = []
    with running_node() as node:
        empty = usage(node, memory=True)
        log(f"a node without elements: {empty.memory_mib:.0f} MiB in {empty.processes} processes")
        settings = {
            "machine": began,
            "empty_node_memory_mib": round(empty.memory_mib),
            "idle_s": IDLE_S,
            "load_s": LOAD_S,
            "window_s": WINDOW_S,
            "pace": specs_pace(),
            "event_bytes": len(Event(12_345, EPOCH_MS).encode()),
        }
        for count in COUNTS:
            for layout in LAYOUTS:
                rows.append(measure(node, count, layout, empty.memory_mib))
                log(str(rows[-1]))
                write_results("node", settings, rows, figure_of(rows))
    if any(row[name] for row in rows for name in ("lost", "duplicated", "reordered", "wrong")):
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


def specs_pace() -> dict[str, Any]:
    return dict(chain("any", 1, "apart")[0].pace.model_dump())


if __name__ == "__main__":
    main()
