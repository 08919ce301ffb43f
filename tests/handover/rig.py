"""A broker that can be killed, proxies, node processes, and groups that run on them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from pipeline_runtime.journal.records import Commit, Record, decode
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.spec import LATENCY_MS_MIN, Follow, GroupSpec, Pace
from pipeline_runtime.operators.registry import Registry, default_registry
from pipeline_runtime.planning.plan import plan_groups, topics
from tests.handover.copier import TYPE, KeyedSequence
from tests.handover.lawful import JournalLaw
from tests.handover.nodes import EngineName, Node, install_operator
from tests.handover.oracle import Judge
from tests.handover.proxy import Proxies, Proxy
from tests.handover.tail import Tail
from tests.handover.traffic import RATE, TICK_S, Load, Observer, idle_keys, send_rows
from tests.ports import free_ports
from workers.supervisor.services import Kafka

PACE = Pace(latency_ms=LATENCY_MS_MIN, interval_ms_min=100, interval_ms_max=100)
_COLUMNS = [{"name": "k"}, {"name": "n", "type": "integer"}, {"name": "pad", "type": "integer"}]
_TICK_S = 0.05


@dataclass(frozen=True)
class Batch:
    """A committed batch with outputs, and when the observer had the last of them."""

    at: float
    commit: Commit


class Journal:
    """All records so far, checked against the law as they come."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.tail = Tail(bootstrap, topic)
        self.law = JournalLaw()
        self.records: list[tuple[int, Record]] = []  # with the broker's time, ms

    def read(self) -> JournalLaw:
        new = [(record.timestamp, decode(record.value)) for record in self.tail.records()]
        self.records += new
        self.law.take(record for _, record in new)
        return self.law

    def commits(self) -> list[Commit]:
        return [record for _, record in self.records if isinstance(record, Commit)]


class Group:
    """A keyed sequence under load: its spec, its traffic and its judge."""

    def __init__(self, kafka: KafkaSettings, *, follow: Follow | None = None, pace: Pace = PACE) -> None:
        self._bootstrap = kafka.bootstrap
        self.inputs = f"in-{uuid4().hex[:9]}"
        self.spec = _plan(self.inputs, pace, follow)
        self.outputs = self.spec.outputs[0].topic
        wanted = [Topic(item.name, item.kind, item.partitions) for item in topics(self.spec)]
        ensure_topics(kafka, [Topic(self.inputs), *wanted])
        self.journal = Journal(self._bootstrap, self.spec.journal)
        self.judge = Judge(self._bootstrap, self.inputs, self.outputs)
        self._load: Load | None = None
        self._observer: Observer | None = None

    def preload(self, state_mib: int) -> int:
        """Sends idle keys with 1 KiB each. Returns how many rows that are."""
        return send_rows(self._bootstrap, self.inputs, idle_keys(state_mib * 1024))

    def send(self, rows: Any) -> int:
        return send_rows(self._bootstrap, self.inputs, rows)

    def load(self, rate: float = RATE, tick_s: float = TICK_S) -> None:
        self._load = Load(self._bootstrap, self.inputs, rate, tick_s)

    def finish_load(self) -> None:
        if self._load is not None:
            self._load.finish()
            self._load = None

    def observe(self) -> None:
        self._observer = Observer(self._bootstrap, self.outputs)

    def batches(self) -> list[Batch]:
        """Returns when each batch's outputs came, as `observe` saw it. Outputs stand in their topic in the
        order of the commits, so their number tells their batch."""
        assert self._observer is not None
        seen = self._observer.seen()
        self.journal.read()
        counts = [count for _, count in seen]
        found, total = [], 0
        for commit in self.journal.commits():
            total += commit.rows_out
            index = bisect_left(counts, total)
            if commit.rows_out and index < len(seen):
                found.append(Batch(seen[index][0], commit))
        return found

    def reconnect(self) -> None:
        """Reconnects after the broker was killed, since a consumer takes half a minute to find out by
        itself."""
        self.judge.close()
        self.journal.tail.close()

    def close(self) -> None:
        self.finish_load()
        self.reconnect()
        if self._observer is not None:
            self._observer.close()
            self._observer = None


def _plan(topic: str, pace: Pace, follow: Follow | None) -> GroupSpec:
    elements = [
        {"id": "input", "type": "kafka-in", "params": {"topic": topic, "columns": _COLUMNS, "key": "k"}},
        {"id": "copier", "type": TYPE, "inputs": {"in": "input"}, "params": {}},
    ]
    document = parse_document(
        {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "handover"},
            "spec": {"elements": elements, "groups": [{"id": "all", "elements": ["input", "copier"]}]},
        }
    )
    library = {operator.type: operator for operator in default_registry().all()}
    registry = Registry({**library, TYPE: KeyedSequence})
    (spec,) = plan_groups(document, f"h{uuid4().hex[:9]}", registry, {})
    return spec.model_copy(update={"pace": pace, "follow": follow or spec.follow})


class Rig:
    """`close` ends everything that is started here, by its process id."""

    def __init__(
        self, directory: Path, names: Sequence[str] = ("a", "b"), engine: EngineName = "spark"
    ) -> None:
        self.directory = directory
        self.proxies = Proxies(tuple(names))
        port, controller_port = free_ports(2)
        self.broker = Kafka(directory / "kafka", port, controller_port, advertised=self.proxies.advertised)
        self.kafka = KafkaSettings(self.broker.bootstrap)
        install_operator(directory / "site")
        self.nodes = {
            name: Node(name, directory / name, f"127.0.0.1:{proxy.port}", directory / "site", engine)
            for name, proxy in self.proxies.lines.items()
        }

    def start(self) -> None:
        self.broker.start()
        for node in self.nodes.values():
            node.launch()
        for node in self.nodes.values():
            node.wait_ready()

    def close(self) -> None:
        for proxy in self.proxies.lines.values():
            proxy.delay(0)
            proxy.heal()
        for node in self.nodes.values():
            node.close()
        self.broker.stop()
        self.proxies.close()

    def proxy(self, node: Node) -> Proxy:
        return self.proxies.lines[node.name]

    def kill_broker(self) -> None:
        pid = self.broker.pid
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        self.broker.stop()

    def start_broker(self) -> None:
        """Starts it on the same data and ports. Call it from the thread that lives as long as the broker has
        to."""
        self.broker.start()

    def wait(self, condition: Callable[[], Any], what: str | Callable[[], str], timeout_s: float) -> Any:
        """Returns the first true value of something that depends on several nodes."""
        deadline = monotonic() + timeout_s
        while not (value := condition()):
            if monotonic() > deadline:
                said = what if isinstance(what, str) else what()
                for node in self.nodes.values():
                    node.print_stacks()
                raise TimeoutError(f"{said}: not within {timeout_s:.0f} s; {self.picture()}")
            sleep(_TICK_S)
        return value

    def picture(self) -> str:
        lines = []
        for node in self.nodes.values():
            state = "frozen" if node.frozen else "up" if node.alive else "down"
            for status in node.news.statuses.values():
                lines.append(
                    f"{node.name} ({state}): {status.role} {status.phase} epoch {status.epoch}"
                    f" seq {status.seq} armed {status.armed} released {status.released} {status.error}"
                )
        return "; ".join(lines)


@contextmanager
def running_rig(
    names: Sequence[str] = ("a", "b"), directory: Path | None = None, engine: EngineName = "spark"
) -> Iterator[Rig]:
    """Yields a rig with Kafka and all nodes up. Without `directory` it has one of its own, which is deleted
    afterwards."""
    own = directory is None
    directory = directory or Path(tempfile.mkdtemp(prefix="fogline-rig-"))
    rig = Rig(directory, names, engine)
    try:
        rig.start()
        yield rig
    finally:
        rig.close()
        if own:
            shutil.rmtree(directory, ignore_errors=True)
