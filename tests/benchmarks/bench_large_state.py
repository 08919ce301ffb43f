"""A state that is much larger than every cache: what it takes to store, move and restore it.

    STATE_MIB=2048 make bench-large-state            QUICK=1 make bench-large-state

A keyed element gets so many keys with 16 KiB each, which hardly compress. Then it gets 200 events/s for few
keys. The owner stores a checkpoint. The other node fetches it and takes the group over live, and stores a
checkpoint, too. The first node has nothing but this checkpoint when the owner gets SIGKILL. It goes on from
the checkpoint.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import uuid4

import plotly.graph_objects as go
import psutil

from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.spec import LATENCY_MS_MIN, Pace
from tests.benchmarks.harness import QUICK, log, machine, write_results
from tests.handover.control import Control
from tests.handover.measuring import commit_after
from tests.handover.nodes import Node
from tests.handover.rig import Group, Rig, running_rig
from tests.handover.traffic import RATE, idle_keys

STATE_MIB = int(os.environ.get("STATE_MIB", "64" if QUICK else "2048"))
PAD = 16 << 10
STEADY = 20  # batches
PATIENCE_S = 900.0
PACE = Pace(latency_ms=LATENCY_MS_MIN, interval_ms_min=100, interval_ms_max=100, batch_rows_max=1000)
"""Its batches change at most some 32 MiB of the state."""
_MIB = 1 << 20
_EVERY_S = 0.5


class Memory:
    """The most memory that the processes of the nodes have had at a time, in MiB, without Java's."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.agent_mib = self.task_mib = 0.0
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            for node in self._nodes:
                with suppress(psutil.Error, ValueError, AssertionError):
                    self._look(psutil.Process(node.pid))

    def _look(self, agent: psutil.Process) -> None:
        self.agent_mib = max(self.agent_mib, agent.memory_info().rss / _MIB)
        for child in agent.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if "python" in child.name():
                    self.task_mib = max(self.task_mib, child.memory_info().rss / _MIB)


def follow_and_own(rig: Rig, node: Node, group: Group, over: int) -> ReplicaStatus:
    """The node starts from what its directory holds and claims the group. Returns its status as the owner."""
    node.start(group.spec)
    node.ask("own", group=group.spec.id, order=uuid4().hex, over=over)
    return node.wait_status(group.spec, lambda now: now.role is Role.OWNER, "to own", PATIENCE_S)


def gap_s(group: Group, epoch: int) -> float:
    """Between the last output before this epoch and the first one of it."""
    batches = group.batches()
    before = [batch.at for batch in batches if batch.commit.epoch < epoch]
    return next(batch.at for batch in batches if batch.commit.epoch == epoch) - before[-1]


def stored(node: Node, group: Group) -> dict[str, Any]:
    """Stores a checkpoint, for which a large state needs more than the usual patience."""
    generation = node.generation(group.spec)
    found: dict[str, Any] = node.ask(
        "checkpoint", timeout_s=PATIENCE_S, group=group.spec.id, generation=generation
    )
    return found


def fetched(node: Node, group: Group, origin: Node) -> dict[str, Any]:
    """Fetches the newest checkpoint into a new directory of this node."""
    generation = node.generations[group.spec.id] = node.generation(group.spec) + 1
    found: dict[str, Any] = node.ask(
        "fetch",
        timeout_s=PATIENCE_S,
        url=origin.news.url,
        group=group.spec.id,
        generation=generation,
        seq=None,
    )
    return found


def forget(node: Node, group: Group) -> None:
    """The node has nothing of the group any more."""
    node.stop(group.spec)
    node.ask("discard", timeout_s=PATIENCE_S, group=group.spec.id)


def measure(rig: Rig, group: Group) -> dict[str, Any]:
    first, second = rig.nodes["a"], rig.nodes["b"]
    control = Control(rig, group)
    control.begin(first)
    forget(second, group)
    begun = monotonic()
    rows = group.send(idle_keys(STATE_MIB * _MIB // PAD, PAD))
    first.wait_status(group.spec, lambda now: now.rows_in_total >= rows, "to fill the state", PATIENCE_S)
    filled_s = monotonic() - begun
    log(f"filled in {filled_s:.0f} s")
    group.observe()
    group.load()
    commit_after(first, group, STEADY)
    taken = stored(first, group)
    log(f"stored: {taken}")
    fetch = fetched(second, group, first)
    log(f"fetched: {fetch}")
    second.start(group.spec)
    control.restock()
    assert control.move(second), rig.picture()
    commit_after(second, group, STEADY)
    move_gap_s = gap_s(group, group.journal.read().granted)
    log(f"moved: {move_gap_s:.3f} s between outputs")
    forget(first, group)
    again = stored(second, group)
    fetched(first, group, second)
    over = group.journal.read().granted
    killed = monotonic()
    second.kill()
    status = follow_and_own(rig, first, group, over)
    commit_after(first, group, STEADY)
    restored_s = next(b.at for b in group.batches() if b.commit.epoch == status.epoch) - killed
    log(f"restored: {restored_s:.1f} s")
    return {
        "filled_s": round(filled_s, 1),
        "keys": rows,
        "bytes_total": taken["bytes_total"],
        "snapshot_ms": round(taken["snapshot_ms"]),
        "store_ms": round(taken["store_ms"]),
        "fetch_ms": round(fetch["fetch_ms"]),
        "move_gap_s": round(move_gap_s, 3),
        "second_bytes_new": again["bytes_new"],
        "second_snapshot_ms": round(again["snapshot_ms"]),
        "second_store_ms": round(again["store_ms"]),
        "restored_s": round(restored_s, 2),
    }


def main() -> None:
    settings = {"machine": machine(), "events_per_s": RATE, "pad": PAD, "pace": dict(PACE.model_dump())}
    with running_rig(("a", "b")) as rig:
        group = Group(rig.kafka, pace=PACE)
        memory = Memory(list(rig.nodes.values()))
        row = {"state_mib": STATE_MIB, **measure(rig, group)}
        memory.close()
        group.finish_load()
        rig.wait(lambda: group.judge.verdict(final=True).lost == 0, "the last outputs", PATIENCE_S)
        verdict = group.judge.verdict(final=True)
        group.close()
        row |= {"agent_mib": round(memory.agent_mib), "task_mib": round(memory.task_mib), **vars(verdict)}
    log(str(row))
    parts = ["filled_s", "move_gap_s", "restored_s"]
    figure = go.Figure(go.Bar(x=parts, y=[row[part] for part in parts]))
    figure.update_layout(title=f"A state of {STATE_MIB:,} MiB, seconds")
    write_results("large-state", settings, [row], figure)
    if not verdict.clean:
        sys.exit("FAILED: the outputs are not what the oracle computes; the figures above mean nothing")


if __name__ == "__main__":
    main()
