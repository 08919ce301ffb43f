"""Events per second through one element, against plain Structured Streaming in the same session.

    make bench-throughput            QUICK=1 make bench-throughput

Rounds alternate: plain, Fogline, plain, Fogline, ... over one input topic that was filled before. Each
round is a new query; its first batches are warm-up and do not count. Then the element is given half of
its throughput, and the latency of its outputs is observed from another process, at the least latency target.
Last, in turns likewise: a keyed processor over a topic of one partition, and over one of PARTITIONS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median
from time import monotonic, time
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go
from pyspark.sql import DataFrame

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.model.spec import Pace
from tests.benchmarks import events, plain
from tests.benchmarks.events import EPOCH_MS, WINDOW_MS, Event, Output, Verdict
from tests.benchmarks.harness import (
    QUICK,
    TARGET_MS,
    Node,
    log,
    machine,
    plain_producer,
    plan,
    records_of,
    running_node,
    spread,
    start_owner,
    wait_for,
    write_results,
)
from tests.benchmarks.load import load_steadily, observing, produce_up_front

BATCH_ROWS = 30_000
WARM_BATCHES = 2 if QUICK else 3
BATCHES = 7 if QUICK else 13  # per round, warm-up included
ROUNDS = 2 if QUICK else 5
LATENCY_S = 6 if QUICK else 20
LATENCY_WARM_S = 3 if QUICK else 8
PACE = Pace(batch_rows_max=BATCH_ROWS)
PARTITIONS = 4


@dataclass(frozen=True)
class Case:
    name: str
    element: dict[str, Any]
    plain: Callable[[DataFrame], DataFrame]
    expected: Callable[[list[Event]], list[Output]]
    identity: str


CASES = (
    Case(
        "filter",
        {"type": "filter", "params": {"condition": "n % 10 = 0"}},
        plain.filtered,
        events.filtered,
        "n",
    ),
    Case(
        "map",
        {"type": "derive", "params": {"columns": [{"name": "double", "expression": "value * 2"}]}},
        plain.mapped,
        events.mapped,
        "n",
    ),
    Case(
        "window-aggregate",
        {
            "type": "window-aggregate",
            "params": {
                "size_s": WINDOW_MS / 1000,
                "keys": ["sensor"],
                "aggregates": [
                    {"function": "avg", "column": "value", "as": "average"},
                    {"function": "max", "column": "value", "as": "highest"},
                    {"function": "count", "column": "value", "as": "count"},
                ],
            },
        },
        plain.windowed,
        events.windowed,
        "window_start",
    ),
    Case(
        "keyed-processor",
        {"type": "running-statistics", "params": {"column": "value", "every_s": 1}},
        plain.reported,
        events.reported,
        "count",
    ),
)


@dataclass
class Run:
    """One round of one system. `done`: when each batch was committed, and the rows until then."""

    done: list[tuple[float, int]]
    cpu_s: float  # used by the node's processes after the warm-up
    verdict: Verdict

    @property
    def counted(self) -> list[tuple[float, int]]:
        """From the last batch of the warm-up on."""
        return [(at, rows) for at, rows in self.done if rows >= WARM_BATCHES * BATCH_ROWS]

    @property
    def events_per_s(self) -> float:
        (begin, before), (end, after) = self.counted[0], self.counted[-1]
        return (after - before) / (end - begin)

    @property
    def cpu_us_per_event(self) -> float:
        return self.cpu_s / (self.counted[-1][1] - self.counted[0][1]) * 1e6

    @property
    def batch_ms(self) -> list[float]:
        times = [at for at, _ in self.counted]
        return [(after - before) * 1000 for before, after in pairwise(times)]


class Progress:
    """Notes when a running round has committed which rows, and the CPU time until then.

    It is told after each batch: `batch_ms` is the time between two notes."""

    def __init__(self, node: Node, count: int) -> None:
        self._node = node
        self._count = count
        self._done: list[tuple[float, int]] = []
        self._cpu_s: list[float] = []

    def reached(self, rows: int) -> None:
        """`rows`: committed in all. Told without a new row (a change of role, a batch of none): no batch."""
        if rows <= (self._done[-1][1] if self._done else 0):
            return
        self._done.append((monotonic(), rows))
        cpu_s = self._node.cpu_s()
        is_warm = not self._cpu_s and rows >= WARM_BATCHES * BATCH_ROWS
        if is_warm or rows >= self._count:
            self._cpu_s.append(cpu_s)

    def next_batch(self) -> None:
        self.reached(min(self._count, (len(self._done) + 1) * BATCH_ROWS))

    @property
    def complete(self) -> bool:
        return len(self._cpu_s) == 2

    def run(self, verdict: Verdict) -> Run:
        return Run(self._done, self._cpu_s[1] - self._cpu_s[0], verdict)


@dataclass
class Measured:
    case: Case
    fogline: list[Run] = field(default_factory=list)
    plain: list[Run] = field(default_factory=list)
    latency: Latency | None = None


@dataclass(frozen=True)
class Latency:
    rate: float
    sent: int
    late_s: float
    values_ms: list[float]
    verdict: Verdict


def elements(case: Case, topic: str, partitions: int = 1) -> list[dict[str, Any]]:
    source = {"topic": topic, "columns": events.COLUMNS, "key": "sensor", "partitions": partitions}
    return [
        {"id": "input", "type": "kafka-in", "params": source},
        {"id": "work", "inputs": {"in": "input"}, **case.element},
    ]


GROUP = {"id": "both", "elements": ["input", "work"]}


def fogline_round(node: Node, case: Case, topic: str, count: int, partitions: int = 1) -> Run:
    [spec] = plan(elements(case, topic, partitions), [GROUP], PACE)
    progress = Progress(node, count)

    def note() -> None:
        progress.reached(replica.status().rows_processed_total)

    replica = start_owner(node, spec)
    node.on_change = note
    try:
        wait_for(lambda: progress.complete, f"{case.name}: all batches", [replica])
    finally:
        node.on_change = lambda: None
        replica.stop(20)
    return progress.run(judged(node, case, list(events.up_front(count)), spec.outputs[0].topic))


def plain_round(node: Node, case: Case, topic: str, count: int) -> Run:
    name = f"plain-{uuid4().hex[:9]}"
    ensure_topics(node.kafka, [Topic(name)])
    producer = plain_producer(node.kafka)
    producer.partitions_for(name)
    progress = Progress(node, count)
    sink = plain.PlainSink(producer, name, progress.next_batch)
    source = node.host.engine.session.readStream.format(plain.FORMAT).options(
        bootstrap=node.kafka.bootstrap, topic=topic, rows_max=str(BATCH_ROWS)
    )
    query = (
        case.plain(source.load())
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(node.directory / "plain" / name))
        .foreachBatch(sink)
        .start()
    )

    def finished() -> bool:
        failure = query.exception()
        if failure is not None:
            raise failure
        return progress.complete

    try:
        wait_for(finished, f"plain {case.name}: all batches")
    finally:
        query.stop()
        producer.close()
    return progress.run(judged(node, case, list(events.up_front(count)), name))


def judged(node: Node, case: Case, given: list[Event], topic: str) -> Verdict:
    got = list(events.decoded(records_of(node.kafka, topic)))
    expected = case.expected(given)
    if case.identity == "window_start":
        # Which windows are closed depends on the batches: all up to the last one that was emitted are.
        got = [(key, _in_ms(data)) for key, data in got]
        newest = max((data["window_start"] for _, data in got), default=0)
        bound = (
            given[-1].time_ms - 3 * WINDOW_MS - 2 * (given[-1].time_ms - given[-2 * BATCH_ROWS :][0].time_ms)
        )
        expected = [item for item in expected if item[1]["window_start"] <= max(newest, bound)]
    return events.judge(expected, got, case.identity)


def _in_ms(data: dict[str, Any]) -> dict[str, Any]:
    start = datetime.fromisoformat(data["window_start"])
    rest = {name: value for name, value in data.items() if name != "window_end"}
    return {**rest, "window_start": round(start.timestamp() * 1000)}


def latency_at_half(node: Node, case: Case, events_per_s: float) -> Latency:
    """What an observer in another process sees while half of the throughput arrives."""
    topic = f"live-{uuid4().hex[:9]}"
    ensure_topics(node.kafka, [Topic(topic)])
    pace = PACE.model_copy(update={"latency_ms": TARGET_MS})
    [spec] = plan(elements(case, topic), [GROUP], pace)
    output = spec.outputs[0].topic
    replica = start_owner(node, spec)
    rate = events_per_s / 2
    with observing(node.kafka, [output]) as observed:
        wait_for(lambda: replica.status().phase == "owning", "the owner", [replica])
        load = load_steadily(node.kafka, [topic], rate, LATENCY_WARM_S + LATENCY_S)
        sent, late_s = load.wait()
        wait_for(lambda: replica.status().rows_in_total >= sent, f"{case.name}: the rest", [replica])
        replica.stop(20)
    given = [Event(n, record.timestamp) for n, record in enumerate(records_of(node.kafka, topic))]
    assert len(given) == sent, f"{len(given)} of {sent} events are in the topic"
    values = observed.of(output, given[0].time_ms + LATENCY_WARM_S * 1000)
    return Latency(rate, sent, late_s, values, judged(node, case, given, output))


def partitions_row(node: Node, topic: str, count: int) -> dict[str, Any]:
    """The same events in `topic`, of one partition, and in one of PARTITIONS."""
    [case] = [case for case in CASES if case.name == "keyed-processor"]
    wide = "events-wide"
    ensure_topics(node.kafka, [Topic(wide, partitions=PARTITIONS)])
    produce_up_front(node.kafka, wide, count, PARTITIONS)
    runs: dict[int, list[Run]] = {1: [], PARTITIONS: []}
    for number in range(ROUNDS):
        for partitions, source in ((1, topic), (PARTITIONS, wide)):
            runs[partitions].append(fogline_round(node, case, source, count, partitions))
        one, many = (runs[partitions][-1].events_per_s for partitions in runs)
        cpu_us = [round(runs[partitions][-1].cpu_us_per_event, 1) for partitions in runs]
        log(
            f"{PARTITIONS} partitions {number + 1}: {many:,.0f} events/s, one {one:,.0f}: {many / one:.2f};"
            f" CPU {cpu_us[1]} and {cpu_us[0]} us per event"
        )
    alone, shared = ([run.events_per_s for run in runs[partitions]] for partitions in runs)
    verdict = sum((run.verdict for each in runs.values() for run in each), events.NOTHING_WRONG)
    return {
        "operator": f"{case.name}, {PARTITIONS} partitions",
        "n": ROUNDS,
        "events_per_s": spread(shared),
        "one_partition_events_per_s": spread(alone),
        "ratio": spread(many / one for many, one in zip(shared, alone, strict=True)),
        "cpu_us_per_event": spread(run.cpu_us_per_event for run in runs[PARTITIONS]),
        "one_partition_cpu_us_per_event": spread(run.cpu_us_per_event for run in runs[1]),
        **vars(verdict),
    }


def row_of(measured: Measured) -> dict[str, Any]:
    fogline, other, latency = measured.fogline, measured.plain, measured.latency
    ratios = sorted(
        ours.events_per_s / theirs.events_per_s for ours, theirs in zip(fogline, other, strict=True)
    )
    verdict = sum((run.verdict for run in fogline), events.NOTHING_WRONG)
    row: dict[str, Any] = {
        "operator": measured.case.name,
        "n": len(fogline),
        "batches": sum(len(run.batch_ms) for run in fogline),
        "events_per_s": spread(run.events_per_s for run in fogline),
        "plain_events_per_s": spread(run.events_per_s for run in other),
        "ratio": {
            "p50": round(median(ratios), 3),
            "min": round(ratios[0], 3),
            "max": round(ratios[-1], 3),
        },
        "cpu_us_per_event": spread(run.cpu_us_per_event for run in fogline),
        "plain_cpu_us_per_event": spread(run.cpu_us_per_event for run in other),
        "batch_ms": spread(value for run in fogline for value in run.batch_ms),
        "plain_batch_ms": spread(value for run in other for value in run.batch_ms),
    }
    if latency is not None:
        row |= {
            "latency_at_events_per_s": round(latency.rate),
            "latency_ms": spread(latency.values_ms),
            "latency_load_late_s": round(latency.late_s, 2),
        }
        verdict += latency.verdict
    plain_verdict = sum((run.verdict for run in other), events.NOTHING_WRONG)
    return {**row, **vars(verdict), **{f"plain_{name}": count for name, count in vars(plain_verdict).items()}}


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    rows = [row for row in rows if "plain_events_per_s" in row]
    return bars(
        {
            title: {row["operator"]: row[key]["p50"] for row in rows}
            for title, key in (
                ("Fogline", "events_per_s"),
                ("plain Structured Streaming", "plain_events_per_s"),
            )
        }
    )


def bars(systems: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Events per second by system and by what it does."""
    figure = go.Figure()
    for system, found in systems.items():
        figure.add_bar(name=system, x=[*found], y=[*found.values()])
    figure.update_layout(
        title="Events per second into one element (median over rounds)",
        yaxis_title="events/s",
        barmode="group",
    )
    return figure


def main() -> None:
    count = BATCHES * BATCH_ROWS
    only = os.environ.get("ONLY", "").split()
    cases = [case for case in CASES if not only or case.name in only]
    began = machine()
    settings = {
        "machine": began,
        "batch_rows": BATCH_ROWS,
        "batches_per_round": BATCHES,
        "warm_batches": WARM_BATCHES,
        "rounds": ROUNDS,
        "event_bytes": len(Event(12_345, EPOCH_MS).encode()),
        "partitions": 1,
    }
    with running_node() as node:
        node.host.engine.session.dataSource.register(plain.PlainSource)
        topic = "events"
        ensure_topics(node.kafka, [Topic(topic)])
        begin = time()
        produce_up_front(node.kafka, topic, count)
        log(f"produced {count:,} events in {time() - begin:.0f} s")
        rows = []
        for case in cases:
            measured = Measured(case)
            for number in range(ROUNDS):
                measured.plain.append(plain_round(node, case, topic, count))
                measured.fogline.append(fogline_round(node, case, topic, count))
                theirs, ours = measured.plain[-1].events_per_s, measured.fogline[-1].events_per_s
                log(
                    f"{case.name} round {number + 1}: Fogline {ours:,.0f}, plain {theirs:,.0f} events/s,"
                    f" ratio {ours / theirs:.2f}; CPU {measured.fogline[-1].cpu_us_per_event:.1f} and"
                    f" {measured.plain[-1].cpu_us_per_event:.1f} us per event; {measured.fogline[-1].verdict}"
                )
            middle = median(run.events_per_s for run in measured.fogline)
            measured.latency = latency_at_half(node, case, middle)
            rows.append(row_of(measured))
            log(f"{case.name}: {rows[-1]}")
            write_results("throughput", settings, rows, figure_of(rows))
        if not only or "partitions" in only:
            rows.append(partitions_row(node, topic, count))
            write_results("throughput", settings, rows, figure_of(rows))
    if any(row[name] for row in rows for name in ("lost", "duplicated", "reordered", "wrong")):
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
