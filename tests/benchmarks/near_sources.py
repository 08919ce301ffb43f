"""What copies near the sources save: one pipeline, placed in several ways, on real nodes behind slow lines.

Two halls send rows, the broker stands in the centre. All arrangements have the same rows at the same times and put
out the same windows and totals (halls.py), which are compared with the oracle after each run:

    copies, by the rule     each hall's rows are read, filtered and made windows of there; the merge is where
                            SpanEdge's rule has it: at a hall
    copies, at the broker   the same, with the merge in the centre
    raw by Fogline          a source in each hall, all else in the centre: raw rows cross the line, as a stream
    raw by a producer       no Fogline in the halls: a plain Kafka producer sends the rows, all else in the centre
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import monotonic, sleep, time
from typing import Any

import httpx
import plotly.graph_objects as go

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import journal_topic, stream_topic
from pipeline_runtime.placement.choose import Candidate, GroupToPlace, place
from tests.benchmarks import halls
from tests.benchmarks.harness import QUICK, log, machine, plain_producer, write_results
from tests.benchmarks.load import observing
from tests.benchmarks.sites import KINDS, Site, Sites, running_sites
from tests.handover.rig import Journal
from tests.integration.pipelines.driving import API, deploy
from tests.waiting import wait_until

CLOUD = Site("cloud")
HALLS = (Site("hall-1", 40.0), Site("hall-2", 80.0))
BETWEEN_HALLS_RTT_MS = 5.0
RATES = [float(rate) for rate in os.environ.get("RATES", "500").split()]
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "4"))
SETTLE_S = float(os.environ.get("SETTLE_S", "15"))
MEASURE_S = float(os.environ.get("MEASURE_S", "20" if QUICK else "60"))
DRAINED_S = 180.0
_TICK_S = 0.05
_context = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Arrangement:
    name: str
    document: Callable[[Inputs], dict[str, Any]]
    sends: bool = False  # the rows come from producers outside of Fogline


@dataclass(frozen=True)
class Inputs:
    """Of one run."""

    rate: float  # rows per second and hall
    files: dict[str, str]  # hall -> reference of its rows
    topics: dict[str, str]  # hall -> topic of its rows, where a producer sends them


def copies(inputs: Inputs, merge_at: str) -> dict[str, Any]:
    elements = []
    for hall in HALLS:
        elements += [halls.recorded(hall.name, inputs.files[hall.name], inputs.rate)]
        elements += halls.local(hall.name, hall.name)
    return _with_the_rest(elements, merge_at, ("readings", "good", "windows"))


def raw_by_fogline(inputs: Inputs) -> dict[str, Any]:
    elements = []
    for hall in HALLS:
        elements += [halls.recorded(hall.name, inputs.files[hall.name], inputs.rate)]
        elements += halls.local(hall.name, CLOUD.name)
    return _with_the_rest(elements, CLOUD.name, ("good", "windows"))


def raw_by_producer(inputs: Inputs) -> dict[str, Any]:
    elements = []
    for hall in HALLS:
        elements += [halls.received(hall.name, inputs.topics[hall.name], CLOUD.name)]
        elements += halls.local(hall.name, CLOUD.name)
    return _with_the_rest(elements, CLOUD.name, ("readings", "good", "windows"))


def _with_the_rest(elements: list[halls.Element], site: str, together: tuple[str, ...]) -> dict[str, Any]:
    rest = [
        halls.merged("all", site, [f"windows-{hall.name}" for hall in HALLS]),
        halls.results(site, "all"),
        halls.totals(site, "all"),
    ]
    groups = {f"local-{hall.name}": [f"{id}-{hall.name}" for id in together] for hall in HALLS}
    return halls.document([*elements, *rest], {**groups, "global": ["all", "results", "totals"]})


def matrix() -> tuple[str, dict[tuple[str, str], float]]:
    """One way, in ms: as the map takes it, and as placement does."""
    names = [CLOUD.name, *(hall.name for hall in HALLS)]
    out = {CLOUD.name: 0.0, **{hall.name: hall.rtt_ms / 2 for hall in HALLS}}

    def ms(a: str, b: str) -> float:
        if a == b:
            return 0.0
        return max(out[a], out[b]) if CLOUD.name in (a, b) else BETWEEN_HALLS_RTT_MS / 2

    known = {(a, b): ms(a, b) for a in names for b in names}
    lines = [",".join(f"{known[a, b]:g}" for b in names) for a in names]
    return "\n".join([",".join(names), *lines]), {pair: way for pair, way in known.items() if pair[0] != pair[1]}


def where_the_rule_merges() -> str:
    """Asked of the rule itself: on this one machine, whose CPU all nodes report as theirs, a deployment often
    finds all of them too busy to be taken for being near, and goes by the number of elements."""
    names = [CLOUD.name, *(hall.name for hall in HALLS)]
    nodes = [Candidate(name, True, True, None, 0, name) for name in names]
    parts = [GroupToPlace(f"local-{hall.name}", 3, site=hall.name) for hall in HALLS]
    whole = GroupToPlace("global", 3, reads=frozenset(part.group for part in parts))
    placed, faults = place([*parts, whole], nodes, latencies=matrix()[1])
    assert not faults, faults
    return placed["global"].node


ARRANGEMENTS = (
    Arrangement("copies, by the rule", lambda inputs: copies(inputs, where_the_rule_merges())),
    Arrangement("copies, at the broker", lambda inputs: copies(inputs, CLOUD.name)),
    Arrangement("raw by Fogline", raw_by_fogline),
    Arrangement("raw by a producer", raw_by_producer, sends=True),
)


# -- rows from outside -------------------------------------------------------------------------------


def _send(bootstrap: str, topic: str, hall: str, rate: float, commands: Connection) -> None:
    producer = plain_producer(KafkaSettings(bootstrap))
    producer.partitions_for(topic)
    begin, begin_ms, sent = monotonic(), time() * 1000, 0
    while not commands.poll(_TICK_S):
        due = int((monotonic() - begin) * rate)
        for n in range(sent, due):
            row = halls.row(hall, n)
            at_ms = int(begin_ms + n * 1000 / rate)
            value, key = json.dumps(row, separators=(",", ":")).encode(), row["sensor"].encode()
            producer.send(topic, value, key, partition=0, timestamp_ms=at_ms)
        sent = max(sent, due)
    producer.flush()
    producer.close()
    commands.send(sent)


class Producers:
    """One for each hall, through its line, each in a process of its own."""

    def __init__(self, sites: Sites, topics: dict[str, str], rate: float) -> None:
        self._running = []
        for hall, topic in topics.items():
            mine, theirs = _context.Pipe()
            bootstrap = f"127.0.0.1:{sites.line(hall, 'kafka').port}"
            arguments = (bootstrap, topic, hall, rate, theirs)
            process = _context.Process(target=_send, args=arguments, daemon=True)
            process.start()
            self._running.append((hall, process, mine))

    def finish(self) -> dict[str, int]:
        """Hall -> rows sent."""
        sent = {}
        for hall, process, commands in self._running:
            commands.send("finish")
            if not commands.poll(60):
                raise TimeoutError(f"the producer of {hall} does not end")
            sent[hall] = commands.recv()
            process.join(10)
        return sent

    def close(self) -> None:
        for _, process, _ in self._running:
            process.kill()


# -- one run -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Snapshot:
    at_s: float
    at_ms: float
    lines: dict[str, tuple[int, int]]  # up, down
    cpu_s: dict[str, float]

    @staticmethod
    def of(sites: Sites) -> Snapshot:
        lines = {name: (found.bytes_up, found.bytes_down) for name, found in sites.counts().items()}
        return Snapshot(monotonic(), time() * 1000, lines, sites.cpu_s())


def measured(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """KB/s over each hall's way out, by kind and direction; CPU in cores."""
    seconds = after.at_s - before.at_s
    kb_s = {}
    for hall in HALLS:
        for kind in KINDS:
            name = f"{hall.name} {kind}"
            up, down = (new - old for new, old in zip(after.lines[name], before.lines[name], strict=True))
            kb_s[name] = [round(up / seconds / 1000, 3), round(down / seconds / 1000, 3)]
    cores = {name: round((after.cpu_s[name] - before.cpu_s[name]) / seconds, 3) for name in after.cpu_s}
    return {"seconds": round(seconds, 1), "kb_s_up_down": kb_s, "cores": cores}


def percentile(values: list[float], share: float) -> float | None:
    ranked = sorted(values)
    return round(ranked[min(len(ranked) - 1, int(share * len(ranked)))], 1) if ranked else None


@contextmanager
def deployed(sites: Sites, client: httpx.Client, document: dict[str, Any]) -> Iterator[str]:
    """The deployment's id. Gone afterwards, with its streams."""
    deployment = deploy(client, document)
    try:
        yield deployment
    finally:
        sites.fogline.remove({halls.NAME})


def run(sites: Sites, client: httpx.Client, arrangement: Arrangement, inputs: Inputs) -> dict[str, Any]:
    kafka = KafkaSettings(sites.broker.bootstrap)
    if arrangement.sends:
        ensure_topics(kafka, [Topic(topic) for topic in inputs.topics.values()])
    with ExitStack() as ends:
        deployment = ends.enter_context(deployed(sites, client, arrangement.document(inputs)))
        results = halls.Stream(kafka.bootstrap, stream_topic(deployment, "results"))
        totals = halls.Stream(kafka.bootstrap, stream_topic(deployment, "totals"))
        ends.callback(results.close)
        ends.callback(totals.close)
        producers = None
        if arrangement.sends:
            producers = Producers(sites, inputs.topics, inputs.rate)
            ends.callback(producers.close)
        wait_until(results.poll, "the first results", DRAINED_S)
        with observing(kafka, [results.topic]) as observed:
            sleep(SETTLE_S)
            before = Snapshot.of(sites)
            sleep(MEASURE_S)
            after = Snapshot.of(sites)
            read = _stopped(client, kafka, deployment, producers)
            expected = [
                output
                for hall, count in read.items()
                for output in halls.windows_of(halls.row(hall, n) for n in range(count))
            ]
            wait_until(lambda: len(results.poll()) >= len(expected), "all results", DRAINED_S)
        verdict = halls.judge_windows(halls.results_of(expected), results.outputs)
        wanted = halls.totals_of(expected)
        faults = wait_until(
            lambda: [halls.judge_totals(wanted, totals.poll())], "the totals"
        )[0] if verdict.clean else []
        wait_until(lambda: not halls.judge_totals(wanted, totals.poll()), "all totals", DRAINED_S)
        latencies = [
            late for at_ms, late in observed.latencies[results.topic] if before.at_ms <= at_ms < after.at_ms
        ]
    assert verdict.clean, f"{arrangement.name}: {verdict} {faults}"
    return {
        "arrangement": arrangement.name,
        "rows_per_s": inputs.rate,
        "results": len(latencies),
        "latency_ms_p50": percentile(latencies, 0.5),
        "latency_ms_p95": percentile(latencies, 0.95),
        **measured(before, after),
        **vars_of(verdict),
    }
