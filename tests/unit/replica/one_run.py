"""One run of a group, of real parts but for Kafka, the engine and the group's elements."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_runtime.batch.gate_messages import GroupDescription
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.tasks import Tasks
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.formats.schema_registry import no_registry
from pipeline_runtime.journal.records import END_STAGE, Boundary, Claim, Commit, Ends
from pipeline_runtime.kafka.limits import TopicLimits
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import Follow, GroupSpec
from pipeline_runtime.replica.batch_commit import BatchCommit
from pipeline_runtime.replica.batch_end import BatchEnd
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.batch_planner import BatchPlanner
from pipeline_runtime.replica.batches import Batches
from pipeline_runtime.replica.keeper import ReplicaKeeper
from pipeline_runtime.replica.local_state import KeptByReplica, KeptBySpark
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.run_registries import RunRegistries
from pipeline_runtime.replica.sink_files import SinkFiles
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.timing import BatchTiming

SPEC = GroupSpec(deployment="d", pipeline="p", group="g", elements=())
GROUP = GroupDescription({}, {}, {}, "")


class Arrived:
    """Stands in for Kafka and the CPU: there is always another row, and all the time to process it."""

    oldest_at_s: float | None = None
    waiting = True
    has_sources = False
    gather_s = 0.0
    rests_until_s = 0.0

    def passed(self, ends: Ends) -> None:
        pass

    def rest_until(self, at_s: float) -> None:
        self.rests_until_s = at_s

    def advance(self, ends: dict[str, int], now_ms: int, *, by_s: float, as_one: int) -> dict[str, int]:
        return {"in-0": ends["in-0"] + as_one}

    def lag_rows(self, ends: object) -> int:
        return 1

    def arrived_at_s(self, start: Ends, end: Ends, now_ms: int) -> float | None:
        return self.oldest_at_s

    def look(self, ends: Ends) -> None:
        pass

    def full(self, ends: object) -> bool:
        return False

    def sources_ended(self, ends: object) -> bool:
        return True

    def ratio(self) -> float:
        return 0.0


@dataclass
class OneRun:
    state: ReplicaState
    inputs: BatchInputs
    timing: BatchTiming
    release: OwnerRelease
    planner: BatchPlanner
    sinks: SinkFiles
    growing: GrowingFiles
    batches: Batches
    keeper: ReplicaKeeper


def one_run(
    state: ReplicaState,
    *,
    spec: GroupSpec = SPEC,
    offsets: Any = None,
    inputs: tuple[GroupInput, ...] = (),
    group: Any = None,
    directory: Path = Path("/nowhere"),
    keyed: KeyedState | None = None,
    tasks: Tasks | None = None,
    end: Any = None,
    ownership: Any = None,
    tick_ms: int | None = None,
) -> OneRun:
    """`group`: its GroupFacts, if it has sinks. `end`: in place of BatchEnd."""
    tasks, cpu, over = tasks or Tasks(1), Arrived(), threading.Event()
    offsets = offsets or Arrived()
    local = Boundary(state.local, {"in-0": state.local, "in-1": state.local}, state.local)
    release = OwnerRelease(state, ownership)
    batch_inputs = BatchInputs(inputs, offsets, flushes=False, tick_ms=tick_ms)
    timing = BatchTiming(spec, state, offsets, cpu, planned=tasks.planned_each)  # type: ignore[arg-type]
    planner = BatchPlanner(spec, state, batch_inputs, timing, release, over, local, _forget)
    growing = GrowingFiles()
    registries = RunRegistries(spec, no_registry, over)
    sinks = SinkFiles(group, growing)
    commit = BatchCommit(spec, state, timing, release, over, "a", lambda _: TopicLimits(), registries)
    kept = KeptBySpark(directory) if keyed is None else KeptByReplica(keyed)
    end = end or BatchEnd(spec, state, batch_inputs, timing, sinks, commit, kept, _forget, registries)
    batches = Batches(state, planner, end, timing, tasks, over)
    keeper = ReplicaKeeper(GROUP, state, batches, batch_inputs, tasks, keyed, registries)
    return OneRun(state, batch_inputs, timing, release, planner, sinks, growing, batches, keeper)


def _forget(_: Seq | bool) -> None:
    """Nobody is told."""


def state(rows: list[int], stages: dict[int, int] | None = None) -> ReplicaState:
    """A journal with one commit for each number of rows; `stages`: seq -> stage of the end."""
    made = ReplicaState()
    made.view.apply(Claim(Epoch(1), "o", "a"))
    for seq, count in enumerate(rows, 1):
        stage = max((s for at, s in (stages or {}).items() if at <= seq), default=0)
        ends = {"in-0": seq, **({END_STAGE: stage} if stage else {})}
        made.view.apply(Commit(Epoch(1), Boundary(Seq(seq), ends, seq), rows_in=count, definition="1"))
    return made


def run_of(made: ReplicaState, follow: Follow = "exact", **parts: Any) -> OneRun:
    spec = GroupSpec(deployment="d", pipeline="p", group="g", elements=(), follow=follow)
    return one_run(made, spec=spec, **parts)
