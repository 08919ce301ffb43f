"""Measures how long a move of a keyed element takes in Kafka Streams and Flink: by order, and after SIGKILL.

    make bench-peers-moves            QUICK=1 make bench-peers-moves
    SYSTEMS=flink WAYS=handover STATES=50 SETTINGS="defaults best" N=10 make bench-peers-moves

The same load as in bench_handover and bench_restoration, which measure Fogline: 200 events/s over 500 keys, a
running count of each, exactly once. Each key also keeps a blob, STATES MiB in all, which the first owner
writes and each other one compares. All is on one machine, a savepoint on its disk: both favour the others.

Kafka Streams, handover: the owner is closed while another process waits; with a warm standby, or without one
(cold). The target is a process that has never run the task. Restoration: the owner gets SIGKILL.

Flink, handover: stop with a savepoint in one cluster that is up, start from it in the other. The first
move, of a job that the other cluster has not run, is told apart ("first_gap_ms"). Restoration: the
cluster gets SIGKILL, and the benchmark at once orders the start from the last checkpoint in the other.
So the time until a failure is noticed (heartbeat.timeout, 50 s by default) is not in it.

With the defaults a process of Kafka Streams that is closed does not leave its group: a move takes 45 s. Cells
like that have N_SLOW moves, the others N.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from tests.benchmarks.events import NOTHING_WRONG
from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.benchmarks.peers.java_peer import java_command
from tests.benchmarks.peers.moving import Gap, MoveFailed, Spoken, Traffic, flowing, gap, wait
from tests.handover.traffic import ACTIVE_KEYS, RATE
from tests.ports import free_ports
from workers.supervisor.services import Kafka

HANDOVER, RESTORATION = "handover", "restoration"
SYSTEMS = os.environ.get("SYSTEMS", "streams flink").split()
WAYS = os.environ.get("WAYS", f"{HANDOVER} {RESTORATION}").split()
STATES = [float(text) for text in os.environ.get("STATES", "1" if QUICK else "0 50").split()]
SETTINGS = os.environ.get("SETTINGS", "best" if QUICK else "").split()
N = int(os.environ.get("N", "2" if QUICK else "10"))
N_SLOW = int(os.environ.get("N_SLOW", "1" if QUICK else "3"))
STEADY_S = 2.2  # before each move
AFTER_S = 1.0
START_S = MOVE_S = 120.0
_LAG_MAX = 150  # records that a warm standby is behind at most

_STREAMS_JAVA = ("-Xmx512m", "-XX:+UseSerialGC")
_OPENED = (
    "lang",
    "util",
    "nio",
    "net",
    "io",
    "time",
    "util.concurrent",
    "util.concurrent.atomic",
    "lang.reflect",
)
_FLINK_JAVA = (
    *("-Xmx1500m", "-XX:+UseSerialGC"),
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED),
)
_LEAVES = ("internal.leave.group.on.close=true",)
_TUNED = (
    *_LEAVES,
    *("heartbeat.interval.ms=100", "session.timeout.ms=6000", "poll.ms=10", "producer.linger.ms=0"),
    "fetch.max.wait.ms=50",
)
_BEST = (
    *_LEAVES,
    *("heartbeat.interval.ms=25", "session.timeout.ms=6000", "poll.ms=5", "producer.linger.ms=0"),
    *("fetch.max.wait.ms=20", "consumer.retry.backoff.ms=10", "commit.interval.ms=25"),
    *("producer.retry.backoff.ms=10", "producer.retry.backoff.max.ms=50"),
)
_ROCKSDB = ("state.backend.type=rocksdb",)


@dataclass(frozen=True)
class Cell:
    """`name`: of its settings. `slow`: a move takes some 45 s."""

    system: str
    way: str
    name: str
    settings: Sequence[str]
    standbys: int = 0
    slow: bool = False

    @property
    def is_wanted(self) -> bool:
        named = not SETTINGS or self.name.split(",")[0] in SETTINGS
        return named and self.system in SYSTEMS and self.way in WAYS


_COMMIT = "commit.interval.ms=100"
CELLS = (
    Cell("streams", HANDOVER, "defaults", (_COMMIT,), standbys=1, slow=True),
    Cell("streams", HANDOVER, "tuned", (_COMMIT, *_TUNED), standbys=1),
    Cell("streams", HANDOVER, "tuned, cold", (_COMMIT, *_TUNED)),
    Cell("streams", HANDOVER, "best", _BEST, standbys=1),
    Cell("streams", RESTORATION, "defaults", (_COMMIT,), standbys=1, slow=True),
    Cell("streams", RESTORATION, "best", (_COMMIT, "session.timeout.ms=6000"), standbys=1),
    Cell("streams", RESTORATION, "best, cold", (_COMMIT, "session.timeout.ms=6000")),
    Cell("flink", HANDOVER, "defaults", (*_ROCKSDB, "execution.checkpointing.interval=100 ms")),
    Cell(
        "flink",
        HANDOVER,
        "best",
        (
            *_ROCKSDB,
            "execution.checkpointing.interval=50 ms",
            *("sink.retry.backoff.ms=10", "sink.retry.backoff.max.ms=50"),
        ),
    ),
    Cell("flink", RESTORATION, "defaults", (*_ROCKSDB, "execution.checkpointing.interval=100 ms")),
)


@dataclass
class Moves:
    """The moves of one cell with one size of the state."""

    cell: Cell
    state_mib: float
    kafka: KafkaSettings
    directory: Path
    traffic: Traffic
    gaps: list[Gap] = field(default_factory=list)
    nodes: list[Spoken] = field(default_factory=list)

    @property
    def count(self) -> int:
        return N_SLOW if self.cell.slow else N

    def launch(self, command: Sequence[str], owner: str, where: Path, ready: str) -> Spoken:
        blob = str(int(self.state_mib * 2**20 / ACTIVE_KEYS))
        name = self.directory.name
        topics = (f"{name}-in", f"{name}-out")
        arguments = [self.kafka.bootstrap, name, str(where), owner, *topics, blob, *self.cell.settings]
        if self.cell.system == "streams":
            arguments.append(f"num.standby.replicas={self.cell.standbys}")
        node = Spoken(owner, [*command, *arguments], self.directory / "log")
        self.nodes.append(node)
        node.expect(ready, START_S)
        return node

    def settled(self, owner: Spoken) -> None:
        """Returns when `owner` has written for a while."""
        traffic = self.traffic

        def is_writing() -> bool:
            return traffic.owner == owner.name and traffic.since_last_s() < 0.5

        wait(is_writing, START_S, lambda: f"outputs of {owner.name}, and not of {traffic.owner}")
        sleep(STEADY_S)
        if traffic.owner != owner.name:
            raise MoveFailed(f"the element moved by itself, to {traffic.owner}")

    def moved(self, old: Spoken, new: Spoken) -> None:
        wait(lambda: self.traffic.owner == new.name, MOVE_S, lambda: f"the first output of {new.name}")
        sleep(AFTER_S)
        self.gaps.append(gap(list(self.traffic.seen), old.name, new.name))
        log(f"{self.cell.system} {self.cell.way}, {self.cell.name}: {self.gaps[-1].ms:.0f} ms")

    def first_outputs(self) -> None:
        self.traffic.start()
        wait(lambda: len(self.traffic.seen) > 2 * ACTIVE_KEYS, START_S, lambda: "the first outputs")

    # --- Kafka Streams: each target is a new process with an empty directory

    def streams(self) -> None:
        owner = self._streams_node(0)
        self.first_outputs()
        for number in range(self.count):
            target = self._streams_node(number + 1)
            if self.cell.standbys:
                self._warm(target)
            self.settled(owner)
            if self.cell.way == RESTORATION:
                owner.kill()
            else:
                owner.say("close")
            self.moved(owner, target)
            if self.cell.way == HANDOVER:
                owner.expect("CLOSED", MOVE_S)
                owner.kill()
            owner = target

    def _streams_node(self, number: int) -> Spoken:
        where = self.directory / f"node-{number}"
        (where / self.directory.name).mkdir(parents=True)
        # The assignor prefers the smaller id: with rising ids no task moves to a newcomer by itself.
        identity = {"processId": f"00000000-0000-0000-0000-{number + 1:012d}"}
        (where / self.directory.name / "kafka-streams-process-metadata").write_text(json.dumps(identity))
        command = java_command("streams", "StreamsMoves", _STREAMS_JAVA)
        return self.launch(command, f"n{number}", where, "STATE RUNNING")

    def _warm(self, standby: Spoken) -> None:
        answers: list[str] = []

        def is_warm() -> bool:
            answers.append(standby.ask("lags", "LAGS"))
            lags = [[int(word) for word in answer.split()] for answer in answers[-5:]]
            return len(lags) == 5 and all(tasks == 1 and 0 <= lag < _LAG_MAX for lag, _, tasks in lags)

        wait(is_warm, START_S, lambda: f"a warm standby; it said {answers[-1]}")

    # --- Flink: two clusters that are up

    def flink(self) -> None:
        owner, target = self._flink_node(), self._flink_node()
        owner.ask("start none", "RUNNING", START_S)
        self.first_outputs()
        for _ in range(self.count):
            self.settled(owner)
            if self.cell.way == RESTORATION:
                owner.kill()
                path = str(self._last_checkpoint())
            else:
                path = owner.ask("stop", "SAVEPOINT", MOVE_S).split()[0]
            target.ask(f"start {path}", "RUNNING", MOVE_S)
            self.moved(owner, target)
            owner, target = target, self._flink_node() if self.cell.way == RESTORATION else owner

    def _flink_node(self) -> Spoken:
        owner = f"f{len(self.nodes)}"
        (self.directory / f"tmp-{owner}").mkdir()
        command = java_command("flink", "FlinkMoves", _FLINK_JAVA)
        return self.launch(command, owner, self.directory, "READY")

    def _last_checkpoint(self) -> Path:
        """Complete ones have this file; it is written last."""
        found = self.directory.glob("checkpoints/*/chk-*/_metadata")
        return max(found, key=lambda path: (path.stat().st_mtime_ns, path.parent.name)).parent

    def row(self) -> dict[str, Any]:
        cell = self.cell
        warm = self.gaps[1:] if cell.system == "flink" and cell.way == HANDOVER else self.gaps
        return {
            "system": cell.system,
            "way": cell.way,
            "settings": cell.name,
            "standbys": cell.standbys,
            "state_mib": self.state_mib,
            "n": len(warm),
            "gap_ms": spread(each.ms for each in warm),
            "least_gap_ms": round(min((each.ms for each in warm), default=0.0), 1),
            "first_gap_ms": round(self.gaps[0].ms, 1) if self.gaps else None,
            "usual_interval_ms": spread(each.usual_ms for each in warm),
            "gaps_ms": [round(each.ms, 1) for each in self.gaps],
        }


def measure(kafka: KafkaSettings, cell: Cell, state_mib: float) -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp(prefix=f"fogline-moves-{uuid4().hex[:6]}-"))
    topics = [f"{directory.name}-{end}" for end in ("in", "out")]
    ensure_topics(kafka, [Topic(name) for name in topics])
    failed, found = [], NOTHING_WRONG
    with flowing(kafka, *topics) as traffic:
        moves = Moves(cell, state_mib, kafka, directory, traffic)
        try:
            moves.streams() if cell.system == "streams" else moves.flink()
        except Exception as error:  # the other cells say what they say
            log(f"{cell} failed: {error}")
            failed.append(f"{type(error).__name__}: {error}"[:500])
        finally:
            if traffic.sent:
                found = traffic.finish(MOVE_S if not failed else AFTER_S)
            for node in moves.nodes:
                node.kill()
            shutil.rmtree(directory, ignore_errors=True)
    row = {**moves.row(), **vars(found), "failed": failed}
    log(f"{cell.system} {cell.way}, {cell.name}, {state_mib:g} MiB: {row['gap_ms']}; {found}")
    return row


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    for state in dict.fromkeys(row["state_mib"] for row in rows):
        cells = [row for row in rows if row["state_mib"] == state and row["n"]]
        figure.add_bar(
            name=f"{state:g} MiB",
            y=[f"{row['system']}, {row['way']}, {row['settings']}" for row in cells],
            x=[row["gap_ms"]["p50"] for row in cells],
            orientation="h",
        )
    figure.update_xaxes(title="ms between the old owner's last output and the new one's first", type="log")
    figure.update_layout(title="Moves of Kafka Streams and Flink (median)", barmode="group")
    return figure


def main() -> None:
    settings = {
        "machine": machine(),
        "events_per_s": RATE,
        "active_keys": ACTIVE_KEYS,
        "cells": [vars(cell) for cell in CELLS if cell.is_wanted],
    }
    rows: list[dict[str, Any]] = []
    directory = Path(tempfile.mkdtemp(prefix="fogline-bench-"))
    port, controller_port = free_ports(2)
    try:
        with Kafka(directory / "kafka", port, controller_port) as service:
            for cell in CELLS:
                for state_mib in STATES if cell.is_wanted else ():
                    rows.append(measure(KafkaSettings(service.bootstrap), cell, state_mib))
                    write_results("peers-moves", settings, rows, figure_of(rows))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if any(row["failed"] or any(row[name] for name in vars(NOTHING_WRONG)) for row in rows):
        sys.exit(
            "FAILED: a run failed, or outputs are not what the oracle computes: those figures mean nothing"
        )


if __name__ == "__main__":
    main()
