"""Compares Fogline with other systems: all process the same events, in turns, on the same broker.

    make bench-peers            QUICK=1 make bench-peers
    ONLY="windows difference" SYSTEMS="fogline streams" ROUNDS=1 make bench-peers

The others: Kafka Streams (streams), Flink (flink), Quix Streams (quix), Structured Streaming with Spark's own
Kafka connector (spark), and its Real-time Mode (realtime). All read and write JSON. Fogline, Kafka Streams,
Flink and Quix Streams are exactly once, and commit every 100 ms (Fogline: each batch of 30,000 rows). Both
modes of Spark are at least once: rows that come twice or out of order are counted, and are no fault of a run.

`peers/works.py` has the works and their oracle, `peers/*_peer.py` the others' settings and limits.
The warm-up, two sevenths of the events, does not count. Spark, which compiles what it runs, first does all of
them once more. Quix Streams gets a fifth of the events. With four partitions and in a chain Kafka Streams and
Flink have two threads or slots, one for each core; else they have one. It needs a JDK.

`python` is keyed statistics: on Fogline as a user's row by row Python, on the others what they do in `keyed`
(Java, but for Quix Streams and Spark). `chain` is three elements: on Fogline and Kafka Streams each in a
group or sub-topology of its own, with a topic to the next; on the others all in one. `chain-in-one` is the
same, but on Fogline all are in one group: no topics between them, as on Flink.
`latency` is that of a row for each row, from the time the event was due to when a `read_committed` consumer
in another process has the result: at 1,000/s, and at half of what the slowest system took of that work in
this run. All have processed some events before.

CPU and memory (PSS): of the system's own processes, without the broker's. Memory is that at the last event;
that of Fogline has this benchmark's own process in it. Theirs count to the last event that was processed,
Fogline's throughput to the last batch that was processed.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.model.spec import LATENCY_MS_MIN, Pace
from pipeline_runtime.replica.replica import Replica
from tests.benchmarks import bench_throughput as throughput, events
from tests.benchmarks.bench_node import usage
from tests.benchmarks.bench_throughput import BATCH_ROWS, PACE, Progress, bars
from tests.benchmarks.events import Verdict
from tests.benchmarks.harness import (
    QUICK,
    Node,
    log,
    machine,
    plan,
    running_node,
    spread,
    start_owner,
    wait_for,
    write_results,
)
from tests.benchmarks.load import load_steadily, observing, produce_up_front
from tests.benchmarks.peers import program, user_operator
from tests.benchmarks.peers.java_peer import FLINK, STREAMS
from tests.benchmarks.peers.program import Job, Peer
from tests.benchmarks.peers.quix_peer import QUIX
from tests.benchmarks.peers.spark_peer import REALTIME, SPARK
from tests.benchmarks.peers.works import WORKS, Work, judge, number_in, times_ms

COUNT = 600_000 if QUICK else 1_500_000
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
PEERS = {peer.name: peer for peer in (STREAMS, FLINK, QUIX, SPARK, REALTIME)}
SYSTEMS = ("fogline", *PEERS)
LATENCY_WORKS = ("map", "difference")
LOW_RATE = 1000.0
LATENCY_WARM_EVENTS = 7 * BATCH_ROWS
LATENCY_WARM_S, LATENCY_S = (3, 5) if QUICK else (5, 15)
_FAULTS = ("lost", "duplicated", "reordered", "wrong")
_FAULTS_AT_LEAST_ONCE = ("lost", "wrong")


def exactly_once(system: str) -> bool:
    return system not in PEERS or PEERS[system].exactly_once


def faulty(row: dict[str, Any]) -> bool:
    """Whether a run failed, or its outputs are not what its system promises."""
    faults = _FAULTS if exactly_once(row["system"]) else _FAULTS_AT_LEAST_ONCE
    return bool(row["failed"]) or any(row.get(name) for name in faults)


def cannot(system: str, name: str) -> str | None:
    """Returns why a system cannot do a work, or None if it can."""
    return PEERS[system].cannot.get(name) if system in PEERS else None


def events_of(system: str) -> tuple[int, int]:
    """Returns how many events a system gets, and how many of them are warm-up."""
    count = COUNT // PEERS[system].part_of_events if system in PEERS else COUNT
    return count, count * 2 // 7 // BATCH_ROWS * BATCH_ROWS


@dataclass(frozen=True)
class Found:
    """One round of one system."""

    events_per_s: float
    cpu_us_per_event: float
    memory_mib: float
    output: str


@dataclass
class Measured:
    rounds: list[Found] = field(default_factory=list)
    verdict: Verdict = events.NOTHING_WRONG
    failed: list[str] = field(default_factory=list)

    def row(self, work: str, system: str) -> dict[str, Any]:
        rates = [each.events_per_s for each in self.rounds]
        return {
            "work": work,
            "system": system,
            "exactly_once": exactly_once(system),
            "events": events_of(system)[0],
            "n": len(rates),
            "events_per_s": spread(rates),
            "rounds_events_per_s": [round(rate) for rate in rates],
            "cpu_us_per_event": spread(each.cpu_us_per_event for each in self.rounds),
            "memory_mib": spread(each.memory_mib for each in self.rounds),
            **vars(self.verdict),
            "failed": self.failed,
        }


def _ready_for(node: Node, work: Work, output: str) -> None:
    """The topics of another system: its output, and those between the elements of a chain."""
    between = [f"{output}-{number}" for number in range(1, len(work.elements))]
    ensure_topics(node.kafka, [Topic(name, partitions=work.partitions) for name in (output, *between)])


def _note(noted: Callable[[int], None], replica: Replica) -> None:
    noted(replica.status().rows_processed_total)


@contextmanager
def _fogline(
    node: Node, work: Work, topic: str, output: str, pace: Pace, noted: Callable[[int], None] | None = None
) -> Iterator[list[Replica]]:
    """Runs it on Fogline. `noted` is told after each batch how many events were processed."""
    ensure_topics(node.kafka, [Topic(output, partitions=work.partitions)])
    specs = plan(work.document(topic, output), work.groups, pace)
    replicas = [start_owner(node, spec) for spec in specs]
    if noted is not None:
        node.on_change = partial(_note, noted, replicas[-1])
    try:
        yield replicas
    finally:
        node.on_change = lambda: None
        for replica in replicas:
            replica.stop(20)


def fogline_round(node: Node, work: Work, topic: str) -> Found:
    progress = Progress(node, COUNT)
    output = f"fogline-{uuid4().hex[:8]}"
    with _fogline(node, work, topic, output, PACE, progress.reached) as replicas:
        wait_for(lambda: progress.complete, "all events", replicas)
        memory_mib = usage(node, memory=True).memory_mib
    run = progress.run(events.NOTHING_WRONG)
    return Found(run.events_per_s, run.cpu_us_per_event, memory_mib, output)


def peer_round(node: Node, peer: Peer, work: Work, topic: str) -> Found:
    output = f"{peer.name}-{uuid4().hex[:8]}"
    _ready_for(node, work, output)
    count, warm = events_of(peer.name)
    job = Job(node.kafka.bootstrap, topic, output, work.program, count, warm, work.threads)
    with program.running(peer, job) as running:
        run = running.result()
    return Found(run.events_per_s, run.cpu_us_per_event, run.memory_mib, output)


@dataclass
class Bench:
    node: Node
    systems: list[str]
    judges: ProcessPoolExecutor
    settings: dict[str, Any]
    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def judged(self, *arguments: Any) -> Verdict:
        """The oracle needs a row's memory twice: it has a process of its own, which is not measured."""
        return self.judges.submit(judge, *arguments).result()

    def throughput(self, name: str, topic: str) -> None:
        work = WORKS[name]
        able = [system for system in self.systems if not self._told_cannot(name, system)]
        measured = {system: Measured() for system in able}
        for number in range(ROUNDS):
            for system, found in measured.items():
                self._round(name, work, topic, system, found, number)
        self.rows += [found.row(name, system) for system, found in measured.items()]
        self.write()

    def _told_cannot(self, name: str, system: str) -> bool:
        why = cannot(system, name)
        if why is None:
            return False
        log(f"{name}: not {system}: {why}")
        row = {"work": name, "system": system, "exactly_once": exactly_once(system), "cannot": why}
        self.rows.append({**row, **vars(events.NOTHING_WRONG), "failed": []})
        return True

    def _round(self, name: str, work: Work, topic: str, system: str, found: Measured, number: int) -> None:
        title = f"{name} round {number + 1}: {system}"
        try:
            if system == "fogline":
                run = fogline_round(self.node, work, topic)
            else:
                run = peer_round(self.node, PEERS[system], work, topic)
            verdict = self.judged(system, name, self.node.kafka.bootstrap, run.output, events_of(system)[0])
        except Exception as error:  # the other rounds say what they say
            log(f"{title} failed: {error}")
            found.failed.append(f"{type(error).__name__}: {error}"[:500])
            return
        found.rounds.append(run)
        found.verdict += verdict
        log(
            f"{title} {run.events_per_s:,.0f} events/s, CPU {run.cpu_us_per_event:.1f} us per event,"
            f" {run.memory_mib:,.0f} MiB; {verdict}"
        )

    def latency(self, name: str, rate: float) -> None:
        for system in self.systems:
            title = f"{name} at {rate:,.0f}/s: {system}"
            row: dict[str, Any] = {"work": name, "system": system, "at_events_per_s": round(rate)}
            row["exactly_once"] = exactly_once(system)
            try:
                row |= self._latency(name, system, rate)
                log(f"{title} {row}")
            except Exception as error:  # the other systems say what they say
                log(f"{title} failed: {error}")
                row |= {**vars(events.NOTHING_WRONG), "failed": [f"{type(error).__name__}: {error}"[:500]]}
            self.rows.append(row)
        self.write()

    def _latency(self, name: str, system: str, rate: float) -> dict[str, Any]:
        node, work = self.node, WORKS[name]
        topic = f"live-{uuid4().hex[:8]}"
        ensure_topics(node.kafka, [Topic(topic)])
        produce_up_front(node.kafka, topic, LATENCY_WARM_EVENTS)
        seconds = LATENCY_WARM_S + LATENCY_S
        count = LATENCY_WARM_EVENTS + math.ceil(rate * seconds)
        run = self._fogline_live if system == "fogline" else self._peer_live
        output, values, late_s = run(work, topic, system, rate, seconds, count)
        verdict = self.judged(system, name, node.kafka.bootstrap, output, count, topic)
        return {
            "n": len(values),
            "latency_ms": spread(values),
            "load_late_s": round(late_s, 2),
            **vars(verdict),
            "failed": [],
        }

    def _fogline_live(
        self, work: Work, topic: str, _: str, rate: float, seconds: float, count: int
    ) -> tuple[str, list[float], float]:
        pace = PACE.model_copy(update={"latency_ms": LATENCY_MS_MIN, "interval_ms_min": LATENCY_MS_MIN})
        output = f"fogline-{uuid4().hex[:8]}"
        # Nobody looks at it while the latency is measured: a look takes as long as a part of a small batch.
        with _fogline(self.node, work, topic, output, pace) as replicas:
            [replica] = replicas
            wait_for(
                lambda: replica.status().rows_processed_total >= LATENCY_WARM_EVENTS, "the warm-up", replicas
            )
            with observing(self.node.kafka, [output]) as observed:
                begin_ms, late_s = self._load(topic, rate, seconds)
                wait_for(lambda: replica.status().rows_processed_total >= count, "the rest", replicas)
        return output, observed.of(output, begin_ms + LATENCY_WARM_S * 1000), late_s

    def _peer_live(
        self, work: Work, topic: str, system: str, rate: float, seconds: float, count: int
    ) -> tuple[str, list[float], float]:
        peer, kafka = PEERS[system], self.node.kafka
        output = f"{system}-{uuid4().hex[:8]}"
        _ready_for(self.node, work, output)
        job = Job(kafka.bootstrap, topic, output, work.program, count, LATENCY_WARM_EVENTS, for_latency=True)
        with program.running(peer, job) as running:
            running.wait_until_warm()
            number_of = None if peer.stamps_outputs else number_in
            with observing(kafka, [output], number_of) as observed:
                begin_ms, late_s = self._load(topic, rate, seconds)
                running.result()
        since_ms = begin_ms + LATENCY_WARM_S * 1000
        if peer.stamps_outputs:
            return output, observed.of(output, since_ms), late_s
        return output, observed.of_numbers(output, times_ms(kafka, topic), since_ms), late_s

    def _load(self, topic: str, rate: float, seconds: float) -> tuple[float, float]:
        """Returns when it began, and by how much it was too slow, in seconds."""
        load = load_steadily(self.node.kafka, [topic], rate, seconds, first=LATENCY_WARM_EVENTS)
        begin_ms = time() * 1000
        _, late_s = load.wait()
        return begin_ms, late_s

    def half_of_the_slowest(self, name: str) -> float | None:
        rates = [row["events_per_s"]["p50"] for row in self.rows if row["work"] == name and row.get("n")]
        return min(rates) / 2 if rates else None

    def write(self) -> None:
        write_results(self.name, self.settings, self.rows, figure_of(self.rows, self.systems))


def figure_of(rows: list[dict[str, Any]], systems: list[str]) -> go.Figure:
    found = [row for row in rows if row.get("events_per_s", {}).get("p50") is not None]
    return bars(
        {
            system: {row["work"]: row["events_per_s"]["p50"] for row in found if row["system"] == system}
            for system in systems
        }
    )


def main() -> None:
    only = os.environ.get("ONLY", "").split()
    parts = only or [*WORKS, "latency"]
    systems = os.environ.get("SYSTEMS", " ".join(SYSTEMS)).split()
    throughput.WARM_BATCHES = events_of("fogline")[1] // BATCH_ROWS
    settings = {
        "machine": machine(),
        "events": COUNT,
        "warm_up_events": events_of("fogline")[1],
        "rounds": ROUNDS,
        "event_bytes": len(events.Event(12_345, events.EPOCH_MS).encode()),
        "peers": {
            peer.name: {
                "exactly_once": peer.exactly_once,
                "settings": peer.settings,
                "for_latency": peer.for_latency,
            }
            for peer in PEERS.values()
            if peer.name in systems
        },
    }
    context = multiprocessing.get_context("spawn")
    with running_node(prepare=user_operator.install_in) as node, ProcessPoolExecutor(1, context) as judges:
        bench = Bench(node, systems, judges, settings, "-".join(["peers", *only]))
        topics = {}
        for partitions in {WORKS[part].partitions for part in parts if part in WORKS}:
            topics[partitions] = f"events-{partitions}"
            ensure_topics(node.kafka, [Topic(topics[partitions], partitions=partitions)])
            produce_up_front(node.kafka, topics[partitions], COUNT, partitions)
        log(f"produced {COUNT:,} events")
        for part in parts:
            if part != "latency":
                bench.throughput(part, topics[WORKS[part].partitions])
                continue
            for name in LATENCY_WORKS:
                for rate in (LOW_RATE, bench.half_of_the_slowest(name)):
                    if rate is not None:
                        bench.latency(name, rate)
    if any(map(faulty, bench.rows)):
        sys.exit(
            "FAILED: a run failed, or outputs are not what the oracle computes: those figures mean nothing"
        )


if __name__ == "__main__":
    main()
