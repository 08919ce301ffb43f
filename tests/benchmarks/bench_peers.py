"""Events per second through one element: Fogline, Kafka Streams and Flink in turns, over the same topic.

    make bench-peers            QUICK=1 make bench-peers
    WORKS="filter map" SYSTEMS="fogline streams" make bench-peers

All are exactly once, read and write JSON, commit every 100 ms (Fogline: each batch of 30,000 rows), keep
state in RocksDB, and have one partition and one thread or slot. The JVMs warm up on the first two sevenths of
the events, which do not count. What each has written is compared with what the oracle computes. It needs a
JDK.

CPU and memory: of the system's own processes, without the broker's. Memory is that at the last event; that of
Fogline has this benchmark's own process in it. Theirs count to the last event that was processed, Fogline's
throughput to the last batch that was committed.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from time import time
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from tests.benchmarks import bench_throughput as throughput, events
from tests.benchmarks.bench_node import usage
from tests.benchmarks.bench_throughput import BATCH_ROWS, CASES, Case, bars, fogline_round
from tests.benchmarks.events import Output, Verdict
from tests.benchmarks.harness import (
    QUICK,
    Node,
    log,
    machine,
    records_of,
    running_node,
    spread,
    write_results,
)
from tests.benchmarks.load import produce_up_front
from tests.benchmarks.peers import java_peer
from tests.benchmarks.peers.java_peer import FLINK, STREAMS, JavaPeer

COUNT = 600_000 if QUICK else 1_500_000
WARM = COUNT * 2 // 7 // BATCH_ROWS * BATCH_ROWS
ROUNDS = 1 if QUICK else 3
WORKS = {"filter": "filter", "map": "map", "keyed": "keyed-processor"}
PEERS = {peer.name: peer for peer in (STREAMS, FLINK)}
SYSTEMS = ("fogline", *PEERS)


@dataclass
class Measured:
    events_per_s: list[float] = field(default_factory=list)
    cpu_us_per_event: list[float] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    verdict: Verdict = events.NOTHING_WRONG

    def row(self, work: str, system: str) -> dict[str, Any]:
        return {
            "work": work,
            "system": system,
            "n": len(self.events_per_s),
            "events_per_s": spread(self.events_per_s),
            "cpu_us_per_event": spread(self.cpu_us_per_event),
            "memory_mib": spread(self.memory_mib),
            **vars(self.verdict),
        }


def fogline(node: Node, case: Case, topic: str, found: Measured) -> None:
    run = fogline_round(node, case, topic, COUNT)
    found.events_per_s.append(run.events_per_s)
    found.cpu_us_per_event.append(run.cpu_us_per_event)
    found.memory_mib.append(usage(node, memory=True).memory_mib)
    found.verdict += run.verdict


def peer(node: Node, system: JavaPeer, case: Case, work: str, topic: str, found: Measured) -> None:
    output = f"{system.name}-{uuid4().hex[:8]}"
    ensure_topics(node.kafka, [Topic(output)])
    run = java_peer.run(system, node.kafka.bootstrap, topic, output, work, COUNT, WARM)
    found.events_per_s.append(run.events_per_s)
    found.cpu_us_per_event.append(run.cpu_s / (COUNT - WARM) * 1e6)
    found.memory_mib.append(run.memory_mib)
    # Flink's program writes no keys, and each row has its sensor.
    rows = (json.loads(record.value) for record in records_of(node.kafka, output))
    got: list[Output] = [(row["sensor"], row) for row in rows]
    found.verdict += events.judge(case.expected(list(events.up_front(COUNT))), got, case.identity)


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    return bars(
        {
            system: {row["work"]: row["events_per_s"]["p50"] for row in rows if row["system"] == system}
            for system in SYSTEMS
        }
    )


def main() -> None:
    works = os.environ.get("WORKS", " ".join(WORKS)).split()
    systems = os.environ.get("SYSTEMS", " ".join(SYSTEMS)).split()
    throughput.WARM_BATCHES = WARM // BATCH_ROWS
    settings = {
        "machine": machine(),
        "events": COUNT,
        "warm_up_events": WARM,
        "rounds": ROUNDS,
        "event_bytes": len(events.Event(12_345, events.EPOCH_MS).encode()),
        "partitions": 1,
    }
    cases = {case.name: case for case in CASES}
    rows: list[dict[str, Any]] = []
    with running_node() as node:
        topic = "events"
        ensure_topics(node.kafka, [Topic(topic)])
        begin = time()
        produce_up_front(node.kafka, topic, COUNT)
        log(f"produced {COUNT:,} events in {time() - begin:.0f} s")
        for work in works:
            case = cases[WORKS[work]]
            measured = {system: Measured() for system in systems}
            for number in range(ROUNDS):
                for system, found in measured.items():
                    if system == "fogline":
                        fogline(node, case, topic, found)
                    else:
                        peer(node, PEERS[system], case, work, topic, found)
                    log(
                        f"{work} round {number + 1}: {system} {found.events_per_s[-1]:,.0f} events/s,"
                        f" CPU {found.cpu_us_per_event[-1]:.1f} us per event; {found.verdict}"
                    )
            rows += [found.row(work, system) for system, found in measured.items()]
            write_results("peers", settings, rows, figure_of(rows))
    if any(row[name] for row in rows for name in ("lost", "duplicated", "reordered", "wrong")):
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
