"""The common part of the benchmarks: real services, a node's runtime in this process, results as JSON and
HTML."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any
from uuid import uuid4

import psutil
from kafka import KafkaProducer, TopicPartition

import pipeline_runtime
from pipeline_runtime.garbage import settle
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.spec import GroupSpec, Pace
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups, topics
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.replica import Replica
from tests.directing import tell
from tests.ports import free_ports
from workers.supervisor.services import Kafka

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "bench"
QUICK = os.environ.get("QUICK", "") not in ("", "0")
READY_TIMEOUT_S = 180.0
ERRORS_EVERY_S = 0.5
TARGET_MS = 20
"""The latency target where a benchmark says nothing else."""


def log(message: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {message}", flush=True)


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Median, p99 (nearest rank) and max of the values; null without any."""
    ranked = sorted(values)
    if not ranked:
        return {"p50": None, "p99": None, "max": None}
    return {
        "p50": round(median(ranked), 3),
        "p99": round(ranked[min(len(ranked) - 1, int(0.99 * len(ranked)))], 3),
        "max": round(ranked[-1], 3),
    }


def machine() -> dict[str, Any]:
    """Where it was measured. `busy_ratio`: how busy others kept it just before."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "busy_ratio": round(psutil.cpu_percent(interval=2) / 100, 2),
        "load_1m": round(os.getloadavg()[0], 2),
    }


def cpu_s_of(processes: Iterable[psutil.Process]) -> float:
    """Returns the CPU time that they have used, with that of children of theirs that have ended; 0 for those
    that have ended themselves."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


class Used:
    """CPU time of processes that come and go: of one that has gone, what it had when it was last seen."""

    def __init__(self) -> None:
        self._seen: dict[psutil.Process, float] = {}

    def cpu_s(self, processes: Iterable[psutil.Process]) -> float:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._seen[process] = float(times.user + times.system)
        return sum(self._seen.values())


@dataclass
class Node:
    """A node's runtime in this process, with a broker of its own."""

    kafka: KafkaSettings
    host: ReplicaHost
    directory: Path
    broker_pid: int
    on_change: Callable[[], None] = field(default=lambda: None)
    used: Used = field(default_factory=Used)

    def processes(self) -> list[psutil.Process]:
        """This process and what it has started, without the broker, load and observer."""
        me = psutil.Process()
        broker = psutil.Process(self.broker_pid)
        excluded = {broker.pid, *(child.pid for child in broker.children(recursive=True))}
        excluded |= {child.pid for child in multiprocessing.active_children() if child.pid is not None}
        return [me, *(one for one in me.children(recursive=True) if one.pid not in excluded)]

    def cpu_s(self) -> float:
        """CPU time that its processes have used: unlike the clock, other programs hardly change it.

        Ask often: of a process that ends, only what it had at the last question counts."""
        return self.used.cpu_s(self.processes())


@contextmanager
def running_node(prepare: Callable[[Path], None] = lambda _: None) -> Iterator[Node]:
    """Starts Kafka and Spark; all of it is gone afterwards, by the ids that were started. `prepare` is called
    before, with a directory that exists as long."""
    directory = Path(tempfile.mkdtemp(prefix="fogline-bench-"))
    prepare(directory / "prepared")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    port, controller_port = free_ports(2)
    try:
        with Kafka(directory / "kafka", port, controller_port) as service:
            kafka = KafkaSettings(service.bootstrap)
            assert service.pid is not None
            node = Node(kafka, bench_host(directory, kafka, lambda: node.on_change()), directory, service.pid)
            log(f"starting Spark; what Java prints: {_java_prints_to(RESULTS / 'java.log')}")
            node.host.start()
            settle()  # as a node does
            try:
                yield node
            finally:
                node.host.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _java_prints_to(path: Path) -> Path:
    """Java and its Python processes inherit descriptor 2, and print there what is no message of a benchmark.
    This process's own errors stay on the terminal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with path.open("w") as file:
        os.dup2(file.fileno(), 2)
    return path


class BenchHost(ReplicaHost):
    """Tells of each batch, also of one that comes within a second of the last: a node's report, every second,
    has those; a benchmark times every batch."""

    def progressed(self, at_once: bool) -> None:
        self.changed()


def bench_host(directory: Path, kafka: KafkaSettings, changed: Callable[[], None]) -> BenchHost:
    def resolve(reference: str) -> Path:
        raise FileNotFoundError(reference)

    return BenchHost("bench", directory / "node", kafka, changed, resolve)


def plan(
    elements: Sequence[dict[str, Any]],
    groups: Sequence[dict[str, Any]] = (),
    pace: Pace | None = None,
) -> tuple[GroupSpec, ...]:
    """The groups of a pipeline document, under a deployment id of their own."""
    document = parse_document(
        {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "bench"},
            "spec": {"elements": list(elements), "groups": list(groups)},
        }
    )
    specs = plan_groups(document, f"b{uuid4().hex[:9]}", default_registry(), {})
    return tuple(spec.model_copy(update={"pace": pace or Pace(latency_ms=TARGET_MS)}) for spec in specs)


def start_owner(node: Node, spec: GroupSpec) -> Replica:
    """A new replica that claims as soon as it runs."""
    ensure_topics(node.kafka, [Topic(item.name, item.kind, item.partitions) for item in topics(spec)])
    replica = Replica(spec, node.directory / "replicas" / spec.id, node.host)
    replica.start()
    tell(replica, order=ClaimOrder(id="bench", over=0))
    return replica


def wait_for(condition: Callable[[], bool], what: str, replicas: Sequence[Replica] = ()) -> None:
    """Raises when a replica fails, or nothing comes of it."""
    deadline = monotonic() + READY_TIMEOUT_S
    looks_at_s = 0.0
    while not condition():
        if monotonic() >= looks_at_s:  # a look takes CPU of the process that is measured
            looks_at_s = monotonic() + ERRORS_EVERY_S
            for replica in replicas:
                error = replica.status().error
                if error is not None:
                    raise RuntimeError(f"{replica.spec.id}: {error.message}\n{error.traceback}")
        if monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {READY_TIMEOUT_S:.0f} s")
        threading.Event().wait(0.02)


def plain_producer(kafka: KafkaSettings) -> KafkaProducer:
    """Idempotent, and otherwise with the runtime's own settings."""
    return KafkaProducer(
        **kafka.client_options(),
        enable_idempotence=True,
        acks="all",
        linger_ms=0,
        compression_type="zstd",
        batch_size=256 * 1024,
        max_request_size=4 * 1024 * 1024,
        metrics_enabled=False,
        allow_auto_create_topics=False,
    )


def records_of(kafka: KafkaSettings, topic: str) -> Iterator[Any]:
    """All committed records that a topic of one partition holds now."""
    consumer = open_consumer(kafka, max_poll_records=10_000, fetch_max_wait_ms=20)
    try:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            yield from consumer.poll(200).get(tp, [])
    finally:
        consumer.close()


def write_results(name: str, settings: dict[str, Any], rows: list[dict[str, Any]], figure: Any) -> Path:
    """build/bench/<name>.json and the plot beside it."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    result = {
        "name": name,
        "version": pipeline_runtime.__version__,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": settings["machine"],
        "settings": {
            "quick": QUICK,
            **{name: value for name, value in settings.items() if name != "machine"},
        },
        "rows": rows,
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
    figure.write_html(path.with_suffix(".html"), include_plotlyjs=True)
    log(f"wrote {path} and {path.with_suffix('.html').name}")
    return path
