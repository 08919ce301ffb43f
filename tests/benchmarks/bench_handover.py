"""E1: the pause of a handover, by size of the state and by delay of the network.

    make bench-handover            QUICK=1 make bench-handover

A keyed element under 200 events/s on two node processes. `live` is a live migration to a standby; the others
stop the element, copy its state and start it again, on a target whose Java has run the query before (`warm`),
and on one that has not (`cold`). The delay is added to the round trip between the target and the broker for
as long as the handover is measured. STRATEGIES, STATES, DELAYS and N (environment) choose cells.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pipeline_runtime.model.desired import Role
from tests.benchmarks.events import Verdict
from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.handover.control import Control
from tests.handover.measuring import Passage, commit_after, passage
from tests.handover.nodes import Node
from tests.handover.rig import PACE, Group, Rig, running_rig
from tests.handover.traffic import ACTIVE_KEYS, RATE

LIVE, WARM, COLD = "live", "stop-copy-start warm", "stop-copy-start cold"
_SHORT = {"live": LIVE, "warm": WARM, "cold": COLD}


def _numbers(name: str, quick: str, full: str) -> tuple[int, ...]:
    return tuple(int(text) for text in os.environ.get(name, quick if QUICK else full).split())


STRATEGIES = tuple(_SHORT[name] for name in os.environ.get("STRATEGIES", "live warm cold").split())
STATES = _numbers("STATES", "0 5", "0 1 5 50")
DELAYS = _numbers("DELAYS", "0 100", "0 100 500")
(N,) = _numbers("N", "3", "20")
QUICK_N = {LIVE: 3, WARM: 2, COLD: 1}
STEADY = 20 if QUICK else 35  # batches before each handover
ARMED = 12  # of them since the target was ready
AFTER = 6  # batches of the new owner


@dataclass
class Cell:
    strategy: str
    state_mib: int
    delay_ms: int
    passages: list[Passage] = field(default_factory=list)
    round_trips: list[float] = field(default_factory=list)
    prepare_ms: list[float] = field(default_factory=list)
    copied_bytes: list[float] = field(default_factory=list)

    def row(self, verdict: Verdict) -> dict[str, Any]:
        names = ("gap_ms", "excess_ms", "interval_ms", "widest_ms", "notice_ms", "first_batch_ms")
        measures = {
            name: spread(value for one in self.passages if (value := getattr(one, name)) is not None)
            for name in (*names, "usual_batch_ms")
        }
        return {
            "strategy": self.strategy,
            "state_mib": self.state_mib,
            "delay_ms": self.delay_ms,
            "n": len(self.passages),
            **measures,
            "round_trips": spread(self.round_trips),
            "prepare_ms": spread(self.prepare_ms),
            "copied_bytes": spread(self.copied_bytes),
            "gaps_ms": [round(one.gap_ms, 1) for one in self.passages],
            **vars(verdict),
        }


class Bench:
    """One group of one state size on two nodes."""

    def __init__(self, rig: Rig, state_mib: int) -> None:
        self.rig = rig
        self.group = Group(rig.kafka)
        self.control = Control(rig, self.group)
        self.state_mib = state_mib
        self.spec = self.group.spec

    def begin(self) -> None:
        rows = self.group.preload(self.state_mib)
        self.control.begin(self.rig.nodes["a"])
        owner = self.rig.nodes["a"]
        owner.wait_status(self.spec, lambda status: status.rows_in_total >= rows, "to preload", 300)
        self.group.observe()
        self.group.load()
        self.control.restock()

    def end(self) -> Verdict:
        self.group.finish_load()
        judge = self.group.judge
        self.rig.wait(lambda: judge.verdict(final=True).lost == 0, "the last outputs", 60)
        self.group.journal.read()
        verdict = judge.verdict(final=True)
        for node in self.rig.nodes.values():
            node.stop(self.spec)
            node.ask("discard", group=self.spec.id)
        self.group.close()
        return verdict

    def roles(self) -> tuple[Node, Node]:
        """Owner and target."""
        owner = self.control.owner()
        assert owner is not None, self.rig.picture()
        (target,) = [node for node in self.rig.nodes.values() if node is not owner]
        return owner, target

    # --- live

    def live(self, cell: Cell) -> None:
        self.follow_again()
        self._live(cell)
        if cell.delay_ms:
            self._live(None)  # back, without delay

    def _live(self, cell: Cell | None) -> None:
        owner, target = self.roles()
        delay_ms = cell.delay_ms if cell else 0
        handover = uuid4().hex
        commit_after(owner, self.group, STEADY - ARMED if cell else 3)
        self.rig.proxy(target).delay(delay_ms)
        begun = monotonic()
        target.ask("succeed", group=self.spec.id, handover=handover)
        target.wait_status(self.spec, lambda status: status.armed == handover, "to arm")
        ready = monotonic()
        commit_after(owner, self.group, ARMED if cell else 3)
        ordered = monotonic()
        owner.ask("release", group=self.spec.id, handover=handover)
        status = target.wait_status(
            self.spec, lambda now: now.role is Role.OWNER and now.order_id == handover, "to own"
        )
        commit_after(target, self.group, AFTER)
        self.rig.proxy(target).delay(0)
        for node in (owner, target):
            node.ask("succeed", group=self.spec.id, handover=None)
            node.ask("release", group=self.spec.id, handover=None)
        if cell is None:
            return
        cell.passages.append(passage(self.group, status.epoch, ordered))
        cell.prepare_ms.append((ready - begun) * 1000)
        newest = target.status(self.spec)
        if newest and newest.takeover and newest.takeover.round_trips is not None:
            cell.round_trips.append(newest.takeover.round_trips)

    def follow_again(self) -> None:
        """After strategies that leave nothing behind: a standby on the other node."""
        owner, target = self.roles()
        if self.control.status(target) is None:
            owner.checkpoint(self.spec)
            target.fetch(self.spec, owner)
            target.start(self.spec)
        target.wait_status(
            self.spec, lambda status: status.phase == "following" and status.behind <= 1, "to follow", 120
        )

    # --- stop, copy, start

    def stop_copy_start(self, cell: Cell) -> None:
        owner, target = self.roles()
        self._empty(target, cold=cell.strategy == COLD)
        commit_after(owner, self.group, 3)
        owner.checkpoint(self.spec)
        commit_after(owner, self.group, STEADY)
        over = self.group.journal.read().granted
        self.rig.proxy(target).delay(cell.delay_ms)
        ordered = monotonic()
        owner.stop(self.spec)
        owner.checkpoint(self.spec)
        fetched = target.fetch(self.spec, owner)
        target.start(self.spec)
        target.ask("own", group=self.spec.id, order=uuid4().hex, over=over)
        status = target.wait_status(self.spec, lambda now: now.role is Role.OWNER, "to own", 120)
        commit_after(target, self.group, AFTER)
        self.rig.proxy(target).delay(0)
        cell.passages.append(passage(self.group, status.epoch, ordered))
        cell.copied_bytes.append(fetched["bytes"])

    def _empty(self, target: Node, *, cold: bool) -> None:
        """Nothing of the group is on the target; cold: nor has its Java run any query."""
        target.stop(self.spec)
        target.ask("discard", group=self.spec.id)
        if cold:
            target.close()
            target.launch()
            target.wait_ready()


def measure(rig: Rig, state_mib: int) -> list[dict[str, Any]]:
    bench = Bench(rig, state_mib)
    bench.begin()
    log(f"{state_mib} MiB of state are there")
    cells = [Cell(strategy, state_mib, delay_ms) for strategy in STRATEGIES for delay_ms in DELAYS]
    for cell in cells:
        for _ in range(min(N, QUICK_N[cell.strategy]) if QUICK else N):
            if cell.strategy == LIVE:
                bench.live(cell)
            else:
                bench.stop_copy_start(cell)
        log(f"{cell.strategy}, {cell.delay_ms} ms: {[round(one.gap_ms) for one in cell.passages]}")
    verdict = bench.end()
    log(str(verdict))
    return [cell.row(verdict) for cell in cells]


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    delays = sorted({row["delay_ms"] for row in rows})
    titles = [f"+{delay} ms between target and broker" for delay in delays]
    figure = make_subplots(rows=1, cols=len(delays), subplot_titles=titles)
    colours = {LIVE: "#0b6e69", WARM: "#b45309", COLD: "#7c3aed"}
    for column, delay in enumerate(delays, 1):
        for strategy, colour in colours.items():
            cells = [row for row in rows if (row["strategy"], row["delay_ms"]) == (strategy, delay)]
            figure.add_scatter(
                x=[str(cell["state_mib"]) for cell in cells],
                y=[cell["gap_ms"]["p50"] for cell in cells],
                error_y={
                    "array": [cell["gap_ms"]["max"] - cell["gap_ms"]["p50"] for cell in cells],
                    "arrayminus": [cell["gap_ms"]["p50"] - min(cell["gaps_ms"]) for cell in cells],
                },
                name=strategy,
                legendgroup=strategy,
                showlegend=column == 1,
                line_color=colour,
                row=1,
                col=column,
            )
        figure.update_xaxes(title="state, MiB", type="category", row=1, col=column)
    figure.update_yaxes(title="gap between outputs, ms (median, min to max)", type="log")
    figure.update_layout(title="Handover: the gap between the old owner's and the new owner's outputs")
    return figure


def main() -> None:
    began = machine()
    settings = {
        "machine": began,
        "events_per_s": RATE,
        "active_keys": ACTIVE_KEYS,
        "pace": dict(PACE.model_dump()),
        "steady_batches": STEADY,
    }
    rows: list[dict[str, Any]] = []
    with running_rig(("a", "b")) as rig:
        for state_mib in STATES:
            rows += measure(rig, state_mib)
            write_results("handover", settings, rows, figure_of(rows))
    if any(row[name] for row in rows for name in ("lost", "duplicated", "reordered", "wrong")):
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
