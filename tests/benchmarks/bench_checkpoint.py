"""E3: what checkpoints cost an owner, and what they store.

    make bench-checkpoint            QUICK=1 make bench-checkpoint

A keyed element under 200 events/s. Periods with a checkpoint every second and periods without alternate in
one run of one query; a batch's time is from its grant to its COMMIT in the journal, by the broker's clock.
Then 1 % of all keys change between one checkpoint and the next: bytes stored, against all there are.
"""

from __future__ import annotations

import os
import sys
from time import monotonic, time
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pipeline_runtime.journal.records import Commit
from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.handover.control import Control
from tests.handover.measuring import commit_after, intervals_ms
from tests.handover.nodes import Node
from tests.handover.rig import PACE, Group, Rig, running_rig
from tests.handover.traffic import ACTIVE_KEYS, RATE, Row

STATES = tuple(int(n) for n in os.environ.get("STATES", "0 5" if QUICK else "0 1 5 50").split())
ROUNDS = int(os.environ.get("ROUNDS", "2" if QUICK else "6"))
PERIOD_BATCHES = 60 if QUICK else 200
EVERY_S = 1.0
CHANGES = 3 if QUICK else 12  # checkpoints after 1 % of the keys has changed
PAD = 1024


class Periods:
    """Times of batches and between outputs, of all periods of one kind."""

    def __init__(self) -> None:
        self.batch_ms: list[float] = []
        self.interval_ms: list[float] = []
        self.snapshot_ms: list[float] = []
        self.store_ms: list[float] = []

    def take(self, group: Group, since: tuple[float, float], until: tuple[float, float]) -> None:
        """Moments as (monotonic s, wall s)."""
        self.interval_ms += intervals_ms(group.batches(), since[0], until[0])
        for at_ms, record in group.journal.records:
            if isinstance(record, Commit) and since[1] * 1000 <= at_ms <= until[1] * 1000:
                self.batch_ms.append(at_ms - record.boundary.batch_time_ms)


def now() -> tuple[float, float]:
    return monotonic(), time()


def measure(rig: Rig, state_mib: int) -> dict[str, Any]:
    group = Group(rig.kafka)
    node = rig.nodes["a"]
    rows = group.preload(state_mib)
    Control(rig, group).begin(node)
    node.wait_status(group.spec, lambda status: status.rows_in_total >= rows, "to preload", 300)
    group.observe()
    group.load()
    commit_after(node, group, PERIOD_BATCHES)
    without, with_ = Periods(), Periods()
    for _ in range(ROUNDS):
        for periods, every_s in ((without, 0.0), (with_, EVERY_S)):
            node.news.checkpoints.clear()
            node.ask(
                "checkpoints_every",
                group=group.spec.id,
                generation=node.generation(group.spec),
                seconds=every_s,
            )
            since = now()
            commit_after(node, group, PERIOD_BATCHES)
            periods.take(group, since, now())
            periods.snapshot_ms += [taken["snapshot_ms"] for taken in node.news.checkpoints]
            periods.store_ms += [taken["store_ms"] for taken in node.news.checkpoints]
    node.ask("checkpoints_every", group=group.spec.id, generation=node.generation(group.spec), seconds=0)
    assert not node.news.checkpoint_failures, node.news.checkpoint_failures
    group.finish_load()
    stored = change_one_percent(group, node, state_mib)
    rig.wait(lambda: group.judge.verdict(final=True).lost == 0, "the last outputs", 60)
    verdict = group.judge.verdict(final=True)
    node.stop(group.spec)
    node.ask("discard", group=group.spec.id)
    group.close()
    return {
        "state_mib": state_mib,
        "n": len(with_.batch_ms),
        "batch_ms_without": spread(without.batch_ms),
        "batch_ms_with": spread(with_.batch_ms),
        "interval_ms_without": spread(without.interval_ms),
        "interval_ms_with": spread(with_.interval_ms),
        "checkpoints": len(with_.snapshot_ms),
        "snapshot_ms": spread(with_.snapshot_ms),
        "store_ms": spread(with_.store_ms),
        **stored,
        **vars(verdict),
    }


def change_one_percent(group: Group, node: Node, state_mib: int) -> dict[str, Any]:
    """Checkpoints, each after another 1 % of all keys has changed, each of them with its whole state."""
    idle = state_mib * 1024
    keys = max(1, (idle + ACTIVE_KEYS) // 100)
    new, total, ratio = [], [], []
    node.checkpoint(group.spec)
    for round_ in range(CHANGES):
        before = node.status(group.spec)
        assert before is not None
        rows = before.rows_in_total + group.send(changed(round_, keys, idle))
        node.wait_status(group.spec, lambda status, rows=rows: status.rows_in_total >= rows, "to change")
        taken = node.checkpoint(group.spec)
        new.append(taken["bytes_new"])
        total.append(taken["bytes_total"])
        ratio.append(taken["bytes_new"] / taken["bytes_total"])
    return {
        "keys_changed": keys,
        "checkpoint_bytes_new": spread(new),
        "checkpoint_bytes_total": spread(total),
        "checkpoint_new_ratio": spread(ratio),
        "checkpoint_new_ratio_mean": round(sum(new) / sum(total), 4),
    }


def changed(round_: int, keys: int, idle: int) -> list[Row]:
    first = round_ * keys
    if idle == 0:
        return [{"k": f"k{n % ACTIVE_KEYS:03d}", "n": n, "pad": 0} for n in range(first, first + keys)]
    numbers = [n % idle for n in range(first, first + keys)]
    return [{"k": f"idle-{n:06d}", "n": idle + round_, "pad": PAD} for n in numbers]


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    figure = make_subplots(rows=1, cols=2, subplot_titles=["batch time, ms", "bytes of a checkpoint"])
    states = [str(row["state_mib"]) for row in rows]
    for name, title, colour in (
        ("batch_ms_without", "without checkpoints", "#64748b"),
        ("batch_ms_with", "one every second", "#0b6e69"),
    ):
        for value, pattern in (("p50", ""), ("p99", "/")):
            figure.add_bar(
                x=states,
                y=[row[name][value] for row in rows],
                name=f"{title}, {value}",
                marker={"color": colour, "pattern": {"shape": pattern}},
                row=1,
                col=1,
            )
    for name, title, colour in (
        ("checkpoint_bytes_new", "stored, 1 % of the keys changed", "#0b6e69"),
        ("checkpoint_bytes_total", "all there is", "#b45309"),
    ):
        values = [row[name]["p50"] for row in rows]
        figure.add_bar(x=states, y=values, name=title, marker_color=colour, row=1, col=2)
    figure.update_yaxes(type="log", row=1, col=2)
    figure.update_xaxes(title="state, MiB", type="category")
    figure.update_layout(title="Checkpoints: batch time with and without, and what is stored")
    return figure


def main() -> None:
    settings = {
        "machine": machine(),
        "events_per_s": RATE,
        "active_keys": ACTIVE_KEYS,
        "every_s": EVERY_S,
        "pace": dict(PACE.model_dump()),
    }
    rows: list[dict[str, Any]] = []
    with running_rig(("a",)) as rig:
        for state_mib in STATES:
            rows.append(measure(rig, state_mib))
            log(str(rows[-1]))
            write_results("checkpoint", settings, rows, figure_of(rows))
    if any(row[name] for row in rows for name in ("lost", "duplicated", "reordered", "wrong")):
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
