"""E2: a node is killed; how long until its element goes on elsewhere.

    make bench-restoration            QUICK=1 make bench-restoration

A keyed element under 200 events/s; its owner's process gets SIGKILL. It goes on from a hot standby, from a
checkpoint that the backup node holds and that so many events have come since, or, for comparison, by a cold
restart of the same process from its local state. The silence after which the rig takes a node for dead is
the product's default; that time and what follows are told apart. STATE_MIB, EVENTS and N choose.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go

from pipeline_runtime.journal.records import Claim
from pipeline_runtime.model.desired import Role
from tests.benchmarks.events import Verdict
from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.handover.control import Control
from tests.handover.measuring import commit_after, wall_ms
from tests.handover.nodes import Node
from tests.handover.rig import PACE, Group, Rig, running_rig
from tests.handover.traffic import ACTIVE_KEYS, RATE, Row

SILENCE_S = 3.0  # as FOGLINE's default
N = int(os.environ.get("N", "2" if QUICK else "20"))
N_REPLAY = int(os.environ.get("N_REPLAY", "1" if QUICK else "5"))
EVENTS = tuple(int(n) for n in os.environ.get("EVENTS", "1000 10000 100000").split())
STATE_MIB = int(os.environ.get("STATE_MIB", "5"))
STEADY = 20
_LOOK_S = 0.02


@dataclass
class Case:
    way: str
    events_old: int | None = None
    times: dict[str, list[float]] = field(default_factory=dict)

    def note(self, **values: float) -> None:
        for name, value in values.items():
            self.times.setdefault(name, []).append(value)

    def row(self, verdict: Verdict) -> dict[str, Any]:
        return {
            "way": self.way,
            "events_old": self.events_old,
            "state_mib": STATE_MIB,
            "n": len(next(iter(self.times.values()), [])),
            **{name: spread(values) for name, values in self.times.items()},
            **vars(verdict),
        }


class Bench:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.group = Group(rig.kafka)
        self.spec = self.group.spec
        self.control = Control(rig, self.group)

    def begin(self) -> None:
        rows = self.group.preload(STATE_MIB)
        owner = self.rig.nodes["a"]
        self.control.begin(owner)
        owner.wait_status(self.spec, lambda status: status.rows_in_total >= rows, "to preload", 300)
        self.group.observe()
        self.group.load()
        self.control.restock()

    def roles(self) -> tuple[Node, Node]:
        owner = self.control.owner()
        assert owner is not None, self.rig.picture()
        (other,) = [node for node in self.rig.nodes.values() if node is not owner]
        return owner, other

    def silence(self, node: Node) -> float:
        """When the node has not been heard for SILENCE_S: what a detector knows, and no more."""
        while (left := node.news.heard_at + SILENCE_S - monotonic()) > 0:
            sleep(min(left, _LOOK_S))
        return monotonic()

    def outputs(self, killed: float, epoch: int) -> tuple[float, float]:
        """When the last output of before and the first of `epoch` could be read."""
        batches = self.group.batches()
        old = [batch.at for batch in batches if batch.commit.epoch < epoch]
        new = [batch.at for batch in batches if batch.commit.epoch == epoch]
        return old[-1], new[0]

    # --- the ways

    def hot_standby(self, case: Case) -> None:
        self.control.restock()
        owner, standby = self.roles()
        commit_after(owner, self.group, STEADY)
        over = self.group.journal.read().granted
        killed = owner.kill()
        missed = self.silence(owner)
        standby.ask("own", group=self.spec.id, order=uuid4().hex, over=over)
        status = standby.wait_status(self.spec, lambda now: now.role is Role.OWNER, "to own")
        commit_after(standby, self.group, 5)
        last, first = self.outputs(killed, status.epoch)
        case.note(
            gap_ms=(first - last) * 1000,
            detection_ms=(missed - killed) * 1000,
            after_detection_ms=(first - missed) * 1000,
            claimed_ms=self._claimed_ms(status.epoch, missed),
        )

    def _claimed_ms(self, epoch: int, since: float) -> float:
        """From `since` to the CLAIM in the journal, by the broker's clock."""
        self.group.journal.read()
        claims = [
            at_ms
            for at_ms, record in self.group.journal.records
            if isinstance(record, Claim) and record.epoch == epoch
        ]
        return claims[-1] - wall_ms(since)

    def cold_restart(self, case: Case) -> None:
        """The same process again, at once, from what lies on its disk; nobody else is there."""
        self.control.restock()
        owner, standby = self.roles()
        standby.stop(self.spec)
        self.control.started.discard(standby.name)
        commit_after(owner, self.group, STEADY)
        over = self.group.journal.read().granted
        killed = owner.kill()
        owner.bury()
        owner.launch()
        owner.wait_ready()
        ready = monotonic()
        owner.start(self.spec)
        self.control.started.add(owner.name)
        owner.ask("own", group=self.spec.id, order=uuid4().hex, over=over)
        status = owner.wait_status(self.spec, lambda now: now.role is Role.OWNER, "to own", 120)
        commit_after(owner, self.group, 5)
        last, first = self.outputs(killed, status.epoch)
        case.note(
            gap_ms=(first - last) * 1000,
            process_ms=(ready - killed) * 1000,
            after_process_ms=(first - ready) * 1000,
        )

    def checkpoint(self, case: Case) -> None:
        """The backup node has a checkpoint, and runs nothing of the group."""
        assert case.events_old is not None
        self.control.restock()
        owner, backup = self.roles()
        backup.stop(self.spec)
        self.control.started.discard(backup.name)
        backup.ask("discard", group=self.spec.id)
        owner.checkpoint(self.spec)
        seq = backup.fetch(self.spec, owner)["seq"]  # replicated, as the product does on its own
        rows = (owner.status(self.spec) or _none()).rows_in_total + self.group.send(_events(case.events_old))
        owner.wait_status(self.spec, lambda now: now.rows_in_total >= rows, "to process the events", 300)
        commit_after(owner, self.group, STEADY)
        over = self.group.journal.read().granted
        killed = owner.kill()
        missed = self.silence(owner)
        backup.fetch(self.spec, backup)
        copied = monotonic()
        backup.start(self.spec)
        self.control.started.add(backup.name)
        backup.ask("own", group=self.spec.id, order=uuid4().hex, over=over)
        status = backup.wait_status(self.spec, lambda now: now.role is Role.OWNER, "to own", 120)
        commit_after(backup, self.group, 5)
        last, first = self.outputs(killed, status.epoch)
        self._note_replay(case, backup, status.epoch, seq, (missed, copied))
        case.note(
            gap_ms=(first - last) * 1000,
            detection_ms=(missed - killed) * 1000,
            after_detection_ms=(first - missed) * 1000,
            copy_ms=(copied - missed) * 1000,
        )

    def _note_replay(
        self, case: Case, node: Node, epoch: int, seq: int, moments: tuple[float, float]
    ) -> None:
        """Replay: from when the query follows to when it claims; it has caught up then."""
        _, copied = moments
        history = [(at, status) for at, status in node.news.history if at >= copied]
        follows = next(at for at, status in history if status.phase == "following")
        claims = next(at for at, status in history if status.phase == "claiming")
        replayed = sum(
            commit.rows_in
            for commit in self.group.journal.commits()
            if commit.seq > seq and commit.epoch < epoch
        )
        case.note(
            start_ms=(follows - copied) * 1000,
            replay_ms=(claims - follows) * 1000,
            replayed_events=replayed,
            replay_ms_per_event=(claims - follows) * 1000 / replayed,
        )

    def end(self) -> Verdict:
        self.group.finish_load()
        judge = self.group.judge
        self.rig.wait(lambda: judge.verdict(final=True).lost == 0, "the last outputs", 60)
        self.group.journal.read()
        self.group.close()
        return judge.verdict(final=True)


def _events(count: int) -> Iterator[Row]:
    return ({"k": f"k{n % ACTIVE_KEYS:03d}", "n": n, "pad": 0} for n in range(count))


def _none() -> Any:
    raise AssertionError("the owner has told nothing yet")


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    names = [
        row["way"] + (f", {row['events_old']:,} events old" if row["events_old"] else "") for row in rows
    ]
    parts = {
        "detection_ms": "silence until it is taken for dead",
        "process_ms": "process and Spark start",
        "copy_ms": "unpacking the checkpoint",
        "start_ms": "query start",
        "replay_ms": "replay",
    }
    figure = go.Figure()
    for part, title in parts.items():
        figure.add_bar(name=title, y=names, x=[_median(row, part) for row in rows], orientation="h")
    rest = [_median(row, "gap_ms") - sum(_median(row, part) for part in parts) for row in rows]
    figure.add_bar(name="claim and first batch", y=names, x=rest, orientation="h")
    figure.update_layout(
        title="SIGKILL of a node: from its last output to the first one elsewhere, median",
        barmode="stack",
        xaxis_title="ms",
    )
    return figure


def _median(row: dict[str, Any], name: str) -> float:
    return float(row[name]["p50"]) if name in row else 0.0


def main() -> None:
    settings = {
        "machine": machine(),
        "events_per_s": RATE,
        "active_keys": ACTIVE_KEYS,
        "silence_s": SILENCE_S,
        "pace": dict(PACE.model_dump()),
    }
    cases = [Case("hot standby"), Case("cold restart"), *(Case("checkpoint", count) for count in EVENTS)]
    with running_rig(("a", "b")) as rig:
        bench = Bench(rig)
        bench.begin()
        for case in cases:
            run = {"hot standby": bench.hot_standby, "cold restart": bench.cold_restart}
            for _ in range(N if case.way == "hot standby" else N_REPLAY):
                run.get(case.way, bench.checkpoint)(case)
            log(f"{case.way} {case.events_old}: {case.times}")
        bench.control.restock()
        verdict = bench.end()
    rows = [case.row(verdict) for case in cases]
    write_results("restoration", settings, rows, figure_of(rows))
    log(str(verdict))
    if not verdict.clean:
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
