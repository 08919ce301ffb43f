"""Measures how much copies near the sources save: one pipeline, placed in several ways, on real nodes behind
slow lines.

Two halls send rows, the broker stands in the centre. All arrangements have the same rows at the same pace and
put out the same windows and totals (halls.py), which are compared with the oracle after each run:

    copies, by the rule     each hall's rows are read, filtered and made windows of there; the merge is where
                            SpanEdge's rule has it: at a hall
    copies, at the broker   the same, with the merge in the centre
    raw by Fogline          a source in each hall, all else in the centre: raw rows cross as a stream
    raw by a producer       nothing of Fogline runs in the halls: a plain Kafka producer sends the rows
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from time import monotonic, sleep, time
from typing import Any

import httpx
import plotly.graph_objects as go

from pipeline_runtime.journal.records import Commit
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.model.ids import journal_topic, stream_topic
from pipeline_runtime.placement.choose import place
from pipeline_runtime.placement.constraints import Candidate, Ground, GroupToPlace
from tests.benchmarks import halls
from tests.benchmarks.harness import QUICK, log, machine, plain_producer, write_results
from tests.benchmarks.load import observing
from tests.benchmarks.sites import KINDS, TARGET_MS, Site, Sites, running_sites
from tests.handover.rig import Journal
from tests.integration.pipelines.driving import API, deploy, upload as upload_file
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
    """The inputs of one run."""

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
    return "\n".join([",".join(names), *lines]), {
        pair: way for pair, way in known.items() if pair[0] != pair[1]
    }


def where_the_rule_merges() -> str:
    """Asked of the rule itself: on this one machine, whose CPU all nodes report as theirs, a deployment often
    finds all of them too busy to be taken for being near, and goes by the number of elements."""
    names = [CLOUD.name, *(hall.name for hall in HALLS)]
    nodes = [Candidate(name, up=True, ready=True, closed=None, place=name) for name in names]
    parts = [GroupToPlace(f"local-{hall.name}", 3, site=hall.name) for hall in HALLS]
    whole = GroupToPlace("global", 3, reads=frozenset(part.group for part in parts))
    placed, faults = place([*parts, whole], nodes, ground=Ground(latencies=matrix()[1]))
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
        due = int((monotonic() - begin) * rate) + 1  # the first at once
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
    """KB/s over each line, by direction; CPU in cores."""
    seconds = after.at_s - before.at_s
    kb_s = {}
    for name in after.lines:
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
    """AssertionError when one output is not the oracle's."""
    kafka = KafkaSettings(sites.broker.bootstrap)
    if arrangement.sends:
        ensure_topics(kafka, [Topic(topic) for topic in inputs.topics.values()])
    with ExitStack() as ends:
        deployment = ends.enter_context(deployed(sites, client, arrangement.document(inputs)))
        out = Outcome(kafka.bootstrap, deployment)
        ends.callback(out.close)
        producers = Producers(sites, inputs.topics, inputs.rate) if arrangement.sends else None
        if producers is not None:
            ends.callback(producers.close)
        wait_until(out.results.poll, "the first results", DRAINED_S)
        with observing(kafka, [out.results.topic]) as observed:
            sleep(SETTLE_S)
            before = Snapshot.of(sites)
            sleep(MEASURE_S)
            after = Snapshot.of(sites)
            if producers is not None:
                out.sent = producers.finish()
            else:
                for hall in HALLS:
                    path = f"{API}/pipelines/{halls.NAME}/elements/readings-{hall.name}/pause"
                    client.post(path).raise_for_status()
            wait_until(out.is_right, out.what_is_wrong, DRAINED_S, look_every_s=1.0)
        seen = observed.latencies[out.results.topic]
        rows_in = out.rows_in(before.at_ms, after.at_ms)
    latencies = [late for at_ms, late in seen if before.at_ms <= at_ms < after.at_ms]
    return {
        "arrangement": arrangement.name,
        "rows_per_s": inputs.rate,
        "rows_in": rows_in,
        "results": len(latencies),
        "latency_ms_p50": percentile(latencies, 0.5),
        "latency_ms_p95": percentile(latencies, 0.95),
        **measured(before, after),
    }


class Outcome:
    """What a deployment has put out, and whether the oracle says the same of the rows that it has read."""

    def __init__(self, bootstrap: str, deployment: str) -> None:
        self.results = halls.Stream(bootstrap, stream_topic(deployment, "results"))
        self.totals = halls.Stream(bootstrap, stream_topic(deployment, "totals"))
        self.sent: dict[str, int] | None = None  # by producers, where they do
        topics = {hall.name: _journal_of_source(bootstrap, deployment, hall.name) for hall in HALLS}
        self._journals = {hall: Journal(bootstrap, topic) for hall, topic in topics.items()}
        self._last: Any = None

    def rows_in(self, since_ms: float, until_ms: float) -> int:
        """What the groups with the sources have committed between these times of the broker."""
        records = [each for journal in self._journals.values() for each in journal.records]
        return sum(
            record.rows_in
            for at_ms, record in records
            if isinstance(record, Commit) and since_ms <= at_ms < until_ms
        )

    def is_right(self) -> bool:
        for journal in self._journals.values():
            journal.read()
        read = self.sent or {hall: halls.rows_read(journal, hall) for hall, journal in self._journals.items()}
        expected = [
            output
            for hall, count in read.items()
            for output in halls.windows_of(halls.row(hall, n) for n in range(count))
        ]
        verdict = halls.judge_windows(halls.results_of(expected), self.results.poll())
        faults = halls.judge_totals(halls.totals_of(expected), self.totals.poll())
        self._last = (read, verdict, faults)
        return verdict.clean and not faults

    def what_is_wrong(self) -> str:
        return f"all results and totals, each once and as computed: {self._last}"

    def close(self) -> None:
        self.results.close()
        self.totals.close()
        for journal in self._journals.values():
            journal.tail.close()


def _journal_of_source(bootstrap: str, deployment: str, hall: str) -> str:
    """A source is in its hall's group, or alone."""
    names = [journal_topic(deployment, group) for group in (f"local-{hall}", f"readings-{hall}")]
    consumer = open_consumer(KafkaSettings(bootstrap))
    try:
        there = consumer.topics()
    finally:
        consumer.close()
    return names[1] if names[1] in there else names[0]


# -- all runs ----------------------------------------------------------------------------------------


def upload(client: httpx.Client, hall: str, rows: int) -> str:
    return upload_file(client, f"{hall}.csv", halls.csv_text(hall, rows))


def measure() -> int:
    log(f"SpanEdge's rule has the merge at {where_the_rule_merges()}")
    settings = {
        "machine": machine(),
        "round_trips_ms": {hall.name: hall.rtt_ms for hall in HALLS},
        "between_halls_ms": BETWEEN_HALLS_RTT_MS,
        "merged_by_the_rule_at": where_the_rule_merges(),
        "target_ms": TARGET_MS,
        "measured_s": MEASURE_S,
        "rounds": ROUNDS,
    }
    rows: list[dict[str, Any]] = []
    with running_sites((CLOUD, *HALLS)) as sites, sites.fogline.client() as client:
        sites.join(client, CLOUD.name, *(hall.name for hall in HALLS))
        client.put(f"{API}/map/latencies", json={"matrix": matrix()[0]}).raise_for_status()
        rows.append({"arrangement": "nothing deployed", "round": 0, **_idle(sites)})
        log(_line(rows[-1]))
        for rate in RATES:
            enough = int(rate * (MEASURE_S + SETTLE_S + 600))
            files = {hall.name: upload(client, hall.name, enough) for hall in HALLS}
            for number in range(ROUNDS):
                for arrangement in ARRANGEMENTS if number % 2 == 0 else ARRANGEMENTS[::-1]:
                    topics = {hall.name: f"raw-{hall.name}-{rate:g}-{number}" for hall in HALLS}
                    found = run(sites, client, arrangement, Inputs(rate, files, topics))
                    rows.append({"round": number, **found})
                    log(_line(rows[-1]))
                    write_results("placement-nodes", settings, rows, figure(rows))
    for line in summary(rows):
        log("  ".join(f"{name} {value}" for name, value in line.items()))
    return 0


def _idle(sites: Sites) -> dict[str, Any]:
    before = Snapshot.of(sites)
    sleep(min(MEASURE_S, 30.0))
    return measured(before, Snapshot.of(sites))


def over_the_lines(row: dict[str, Any], kinds: tuple[str, ...] = KINDS) -> float:
    """Returns the KB/s of all halls, both directions together.

    What a node's own service answers is left out. That is the probing of the lines' rate: 1 MiB each ten
    minutes for each pair of nodes (docs/explanation/map.md), and only some runs have it."""
    found = 0.0
    for name, (up, down) in row["kb_s_up_down"].items():
        kind = name.split()[1]
        found += (up + (down if kind != "node" else 0.0)) * (kind in kinds)
    return round(found, 2)


def a_row(row: dict[str, Any], thousandths_per_s: float) -> float:
    """Converts thousands a second (KB, ms of CPU) to bytes or us for each row that came in."""
    return round(1000 * thousandths_per_s * row["seconds"] / row["rows_in"], 1)


def _line(row: dict[str, Any]) -> str:
    kinds = "  ".join(f"{kind} {over_the_lines(row, (kind,))}" for kind in KINDS)
    named = "  ".join(f"{name} {value}" for name, value in row.items() if name != "kb_s_up_down")
    return f"{named}  KB/s: {over_the_lines(row)} ({kinds})"


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the median (least to most) over the rounds, for each rate and arrangement."""
    found = []
    lines = (("all lines", KINDS), ("kafka", ("kafka",)))
    for rate, name in dict.fromkeys(
        (row["rows_per_s"], row["arrangement"]) for row in rows if "rows_per_s" in row
    ):
        mine = [row for row in rows if row["arrangement"] == name and row.get("rows_per_s") == rate]
        found.append(
            {
                "rows/s a hall": rate,
                "arrangement": name,
                "n": len(mine),
                "rows that came in": _range([row["rows_in"] / row["seconds"] for row in mine]),
                **{
                    f"bytes a row, {line}": _range([a_row(row, over_the_lines(row, kinds)) for row in mine])
                    for line, kinds in lines
                },
                "latency ms p50": _range([row["latency_ms_p50"] for row in mine]),
                "p95": _range([row["latency_ms_p95"] for row in mine]),
                **{
                    f"CPU us a row, {node}": _range([a_row(row, row["cores"][node] * 1000) for row in mine])
                    for node in mine[0]["cores"]
                },
            }
        )
    return found


def _range(values: list[float]) -> str:
    return f"{median(values):,.1f} ({min(values):,.1f} to {max(values):,.1f})"


def figure(rows: list[dict[str, Any]]) -> go.Figure:
    names = [name for name in dict.fromkeys(row["arrangement"] for row in rows) if name != "nothing deployed"]
    drawn = [
        go.Scatter(
            name=name,
            x=[over_the_lines(row) for row in rows if row["arrangement"] == name],
            y=[row["latency_ms_p50"] for row in rows if row["arrangement"] == name],
            mode="markers",
        )
        for name in names
    ]
    found = go.Figure(drawn)
    found.update_layout(
        xaxis_title="over the wide lines, KB/s", yaxis_title="latency p50, ms", xaxis_type="log"
    )
    return found
