"""DEBS 2012 Query 1 at the rate of the digital-twin papers, and as fast as it goes.

    make bench-debs            QUICK=1 make bench-debs

Alaasam, Radchenko and Tchernykh ran it on Kafka Streams on one computer for an hour: 379,820 messages. Their
three figures, by their definitions, and ours:

    interval     Av_SM, between two messages of the source: a rate that they set, no cost
    delivery     Av_DV, from the source's stamp to when a consumer of the topic has the message
    turnaround   Av_TAT, from there, for a message that changes a state, to when its result is handed to the
                 second set of operators; here: can be read there, which is after its commit

and stricter ones, from the source's stamp: `edge`, until the edge can be read, and `growth`, until it has
gone through three groups. On one node and over three, at rest and with a live migration a minute of the
element that finds the edges. What comes out is compared with an oracle: each edge once, in order.

MINUTES (default 60), COUNT (messages of the run without a pace), LAYOUTS, MOVING and TARGET_MS, the latency
target of each element, choose.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean
from time import monotonic, sleep, time
from typing import Any

import httpx
import plotly.graph_objects as go
import psutil

from pipeline_runtime.journal.records import Claim, Commit
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import journal_topic, stream_topic
from tests.benchmarks import additive_signals as signals
from tests.benchmarks.harness import QUICK, Used, log, machine, plain_producer, spread, write_results
from tests.benchmarks.load import observing
from tests.handover.rig import Journal
from tests.handover.tail import Tail
from tests.integration.pipelines.driving import deploy, hand_over
from tests.running import RunningFogline
from tests.waiting import wait_until

MINUTES = float(os.environ.get("MINUTES", "1" if QUICK else "60"))
COUNT = int(os.environ.get("COUNT", "20000" if QUICK else str(signals.PER_HOUR)))
LAYOUTS = os.environ.get("LAYOUTS", "one three").split()
MOVING = [bool(int(each)) for each in os.environ.get("MOVING", "0 1").split()]
TARGET_MS = os.environ.get("TARGET_MS", "20")
NODES = ("edge-a", "edge-b", "edge-c")
MOVED = "edges"  # the element whose group moves
SETTLE_S = 30.0
DRAINED_S = 1800.0
EACH_S = 15.0 if QUICK else 60.0  # a migration
_TICK_S = 0.001
_context = multiprocessing.get_context("spawn")


def nodes_of(layout: str) -> dict[str, str]:
    if layout == "one":
        return dict.fromkeys(signals.GROUPS, NODES[0])
    return {group: NODES[min(place, 2)] for place, group in enumerate(signals.GROUPS)}


# -- the source --------------------------------------------------------------------------------------


def _send(bootstrap: str, topic: str, commands: Connection) -> None:
    producer = plain_producer(KafkaSettings(bootstrap))
    producer.partitions_for(topic)
    begin_ms, sent = time() * 1000, 0
    while not commands.poll(_TICK_S):
        due = int((time() * 1000 - begin_ms) / signals.INTERVAL_MS) + 1  # the first at once
        for sample in signals.samples(begin_ms, sent, due):
            producer.send(topic, sample.encode(), partition=0, timestamp_ms=sample.time_ms)
        sent = max(sent, due)
    producer.flush()
    producer.close()
    commands.send((begin_ms, sent))


@contextmanager
def source(kafka: KafkaSettings, topic: str) -> Iterator[Callable[[], tuple[float, int]]]:
    """Sends at the papers' rate from a process of its own; ended by a call, which gives when it began, in ms,
    and how many it has sent."""
    mine, theirs = _context.Pipe()
    process = _context.Process(target=_send, args=(kafka.bootstrap, topic, theirs), daemon=True)
    process.start()

    def finish() -> tuple[float, int]:
        mine.send("finish")
        if not mine.poll(60):
            raise TimeoutError("the source does not end")
        begin_ms, sent = mine.recv()
        return begin_ms, sent

    try:
        yield finish
    finally:
        process.kill()


def send_all(kafka: KafkaSettings, topic: str, count: int) -> float:
    """All at once; when the first of them is said to be from, in ms."""
    begin_ms = time() * 1000 - count * signals.INTERVAL_MS
    producer = plain_producer(kafka)
    for sample in signals.samples(begin_ms, 0, count):
        producer.send(topic, sample.encode(), partition=0, timestamp_ms=sample.time_ms)
    producer.flush()
    producer.close()
    return begin_ms


# -- what comes out ----------------------------------------------------------------------------------


class Edges:
    """The stream of edges, against the oracle."""

    def __init__(self, bootstrap: str, deployment: str) -> None:
        self.topic = stream_topic(deployment, "named")
        self._tail = Tail(bootstrap, self.topic)
        self._found: list[signals.Rise] = []

    def read(self) -> list[signals.Rise]:
        for record in self._tail.records():
            self._found.append(signals.Rise(json.loads(record.value)["signal"], record.timestamp))
        return self._found

    def wait_for(self, expected: list[signals.Rise]) -> None:
        """AssertionError when what came is not what was to come."""

        def there() -> bool:
            return len(self.read()) >= len(expected)

        wait_until(there, f"{len(expected)} edges", DRAINED_S, look_every_s=1.0)
        assert self._found == expected, f"{len(self._found)} edges are not the oracle's {len(expected)}"

    def close(self) -> None:
        self._tail.close()


def ms(values: list[float]) -> dict[str, float | None]:
    return {"mean": round(mean(values), 2) if values else None, **spread(values)}


# -- at their rate -----------------------------------------------------------------------------------


def at_their_rate(
    fogline: RunningFogline, client: httpx.Client, layout: str, moving: bool, number: int
) -> dict[str, Any]:
    kafka, topic = KafkaSettings(fogline.bootstrap), f"samples-{number}"
    ensure_topics(kafka, [Topic(topic)])
    deployment = deploy(client, signals.document(topic, nodes_of(layout)))
    edges = Edges(kafka.bootstrap, deployment)
    growth, used = stream_topic(deployment, "growth"), Used()
    try:
        with source(kafka, topic) as finish:
            wait_until(lambda: edges.read(), "the first edge", DRAINED_S)
            sleep(SETTLE_S)
            with observing(kafka, [topic, edges.topic, growth]) as observed:
                since_ms, before_s = time() * 1000, used.cpu_s(family(fogline))
                moves = moved_each_minute(client) if moving else waited()
                until_ms, after_s = time() * 1000, used.cpu_s(family(fogline))
                begin_ms, sent = finish()
                edges.wait_for(signals.rises(begin_ms, sent))
                sleep(SETTLE_S)
    finally:
        edges.close()
        fogline.remove({signals.NAME})
    seen = {
        name: {at: late for at, late in observed.latencies[each] if since_ms <= at < until_ms}
        for name, each in (("delivery", topic), ("edge", edges.topic), ("growth", growth))
    }
    turnaround = [late - seen["delivery"][at] for at, late in seen["edge"].items() if at in seen["delivery"]]
    seconds = (until_ms - since_ms) / 1000
    return {
        "part": "at their rate",
        "layout": layout,
        "moving": moving,
        "minutes": round(seconds / 60, 1),
        "messages": len(seen["delivery"]),
        "interval_ms": round(1000 * seconds / len(seen["delivery"]), 3),
        "turnaround_ms": ms(turnaround),
        **{f"{name}_ms": ms(list(found.values())) for name, found in seen.items()},
        "edges": len(seen["edge"]),
        "cores": round((after_s - before_s) / seconds, 3),
        "moves": len(moves),
        "pause_ms": spread(moves),
    }


def family(fogline: RunningFogline) -> list[psutil.Process]:
    """All that Fogline runs, Kafka and Redis with it."""
    assert fogline.process is not None
    return [fogline.process, *fogline.process.children(recursive=True)]


def waited() -> list[float]:
    sleep(MINUTES * 60)
    return []


def moved_each_minute(client: httpx.Client) -> list[float]:
    """What each move says of its pause, in ms."""
    ends, pauses, place = monotonic() + MINUTES * 60, [], 0
    while (left := ends - monotonic()) > EACH_S:
        sleep(EACH_S)
        place = 1 - place
        handover = hand_over(client, signals.NAME, MOVED, "migrate", NODES[place])
        assert handover["outcome"] == "done", handover
        if handover["pause"] is not None:
            pauses.append(float(handover["pause"]["ms"]))
    sleep(max(0.0, left))
    return pauses


# -- as fast as it goes ------------------------------------------------------------------------------


def without_a_pace(fogline: RunningFogline, client: httpx.Client, layout: str, number: int) -> dict[str, Any]:
    kafka, topic = KafkaSettings(fogline.bootstrap), f"hour-{number}"
    ensure_topics(kafka, [Topic(topic)])
    begin_ms = send_all(kafka, topic, COUNT)
    deployment = deploy(client, signals.document(topic, nodes_of(layout)))
    edges = Edges(kafka.bootstrap, deployment)
    journal = Journal(kafka.bootstrap, journal_topic(deployment, "watch"))
    try:
        edges.wait_for(signals.rises(begin_ms, COUNT))
        journal.read()
        claimed_ms = next(at for at, record in journal.records if isinstance(record, Claim))
        commits = [(at, record) for at, record in journal.records if isinstance(record, Commit)]
    finally:
        edges.close()
        journal.tail.close()
        fogline.remove({signals.NAME})
    # From its claim on, with all that starts once.
    rows = sum(commit.rows_in for _, commit in commits)
    last_ms = max(at for at, commit in commits if commit.rows_in)
    per_s = rows * 1000 / (last_ms - claimed_ms)
    return {
        "part": "as fast as it goes",
        "layout": layout,
        "messages": rows,
        "seconds": round((last_ms - claimed_ms) / 1000, 1),
        "batches": len(commits),
        "messages_per_s": round(per_s),
        "messages_per_hour": round(per_s * 3600),
    }


# -- all runs ----------------------------------------------------------------------------------------


def main() -> int:
    settings = {
        "machine": machine(),
        "minutes": MINUTES,
        "count": COUNT,
        "moved": MOVED,
        "target_ms": TARGET_MS,
    }
    rows: list[dict[str, Any]] = []
    directory = Path(tempfile.mkdtemp(prefix="fogline-debs-"))
    try:
        # What was put out stays, until it is compared.
        running = RunningFogline(
            directory / "fogline", nodes=NODES, FOGLINE_TRIM_S="0", FOGLINE_LATENCY_MS=TARGET_MS
        )
        with running as fogline, fogline.client() as client:
            wait_until(lambda: _ready(client), "the nodes to be ready", DRAINED_S, look_every_s=1.0)
            for layout in LAYOUTS:
                for moving in MOVING:
                    rows.append(at_their_rate(fogline, client, layout, moving, len(rows)))
                    _tell(rows, settings)
                rows.append(without_a_pace(fogline, client, layout, len(rows)))
                _tell(rows, settings)
    except BaseException:
        print(f"logs are left in {directory}", file=sys.stderr)
        raise
    shutil.rmtree(directory, ignore_errors=True)
    return 0


def _ready(client: httpx.Client) -> bool:
    nodes = client.get("/api/v1/nodes").json()
    return len(nodes) == len(NODES) and all(node["up"] and node["ready"] for node in nodes)


def _tell(rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    log("  ".join(f"{name} {value}" for name, value in rows[-1].items()))
    write_results("debs", settings, rows, figure(rows))


def figure(rows: list[dict[str, Any]]) -> go.Figure:
    measures = ("delivery_ms", "turnaround_ms", "edge_ms", "growth_ms")
    drawn = [
        go.Bar(
            name=f"{row['layout']} node(s){', moving' if row['moving'] else ''}",
            x=list(measures),
            y=[row[measure]["mean"] for measure in measures],
        )
        for row in rows
        if row["part"] == "at their rate"
    ]
    found = go.Figure(drawn)
    found.update_layout(yaxis_title="mean, ms", yaxis_type="log")
    return found


if __name__ == "__main__":
    sys.exit(main())
