"""One run of a group's query. It begins where the local state stands, and lasts until the query ends.

A replica has one run after another. A new run begins after a commit whose outcome is unknown, after an
announced batch that was not committed, and when the definition changes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate_messages import GroupDescription
from pipeline_runtime.batch.inputs import GroupInput, open_source
from pipeline_runtime.batch.tasks import Tasks
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.journal.records import Boundary, Ends
from pipeline_runtime.kafka.limits import OutputLimits
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.batch_commit import BatchCommit
from pipeline_runtime.replica.batch_end import BatchEnd
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.batch_planner import BatchPlanner
from pipeline_runtime.replica.batches import Batches
from pipeline_runtime.replica.engine import Query
from pipeline_runtime.replica.errors import text_of
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.input_offsets import InputOffsets
from pipeline_runtime.replica.keeper import ReplicaKeeper
from pipeline_runtime.replica.local_state import KeptByReplica, KeptBySpark, open_keyed, spark_directory
from pipeline_runtime.replica.looking import Looking
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.run_registries import RunRegistries
from pipeline_runtime.replica.sink_files import SinkFiles
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.timing import BatchTiming

log = logging.getLogger(__name__)

LET_GO_S = 10.0
# How often the run asks the engine whether the query is active. Java has to answer, so this costs time. A
# failure in a batch is known at once without this question.
_ACTIVE_LOOK_S = 0.4


@dataclass(frozen=True)
class Start:
    """The definition, the state and the inputs with which a run begins."""

    definition: GroupSpec  # an earlier definition, if the replica follows batches from before an upgrade
    local: Boundary  # where the local state stands
    marks: dict[str, Any]  # where the group's sinks stand
    inputs: tuple[GroupInput, ...]  # with the partitions that the position names
    tasks_max: int | None = None  # None if the group's own limit applies


class Run:
    def __init__(
        self,
        start: Start,
        directory: Path,
        state: ReplicaState,
        host: ReplicaHost,
        release: OwnerRelease,
        remember: Callable[[Seq], None],
        oldest: Callable[[Ends], Mapping[str, int]],
        note: Callable[[str], None],
    ) -> None:
        """`remember(seq)` is called for each batch that is final. `oldest(ends)` returns the oldest offsets
        that the users' topics still have, as far as they are known. `note(text)` is called with a text for
        people about the rows that were read. Raises LocalStateDamaged."""
        self.definition = definition = start.definition
        self._directory = directory
        self._host = host
        self._query: Query | None = None
        self.begun = False  # whether the query was started; it may not have connected yet
        self._active = False
        self._active_at_s = 0.0
        files = {reference: str(host.resolve_file(reference)) for reference in definition.files}
        self._group = group = GroupFacts(definition, files, directory, start.inputs)
        self.stateful = group.stateful is not None  # otherwise the local state is only a position
        with ExitStack() as opened:
            self._keyed = keyed = self._open_keyed(start.local)
            if keyed is not None:
                opened.callback(keyed.close)
            self.offsets = self._open_offsets(files, state)
            opened.callback(self.offsets.close)
            tasks = Tasks(
                start.tasks_max or group.tasks_max,
                planned=group.is_planned,
                partitions=group.tasks_max if self.stateful else None,
            )
            # Without state and files, the group can do without rows that it has committed and Kafka deleted.
            needs_all = self.stateful or bool(group.sinks)
            self.inputs = inputs = BatchInputs(
                group.inputs,
                self.offsets,
                flushes=group.flushes,
                tick_ms=group.tick_ms,
                oldest=None if needs_all else oldest,
                note=note,
            )
            self.timing = timing = BatchTiming(
                definition, state, self.offsets, host.cpu, planned=group.is_planned
            )
            over = threading.Event()
            self._planner = planner = BatchPlanner(
                definition, state, inputs, timing, release, over, start.local, remember
            )
            self.growing = GrowingFiles(keyed)
            sinks = SinkFiles(group, self.growing)
            self.registries = registries = RunRegistries(definition, host.registries, over)
            limits = OutputLimits(host.kafka, {output.topic for output in definition.outputs})
            commit = BatchCommit(definition, state, timing, release, over, host.node, limits.of, registries)
            kept = KeptBySpark(directory) if keyed is None else KeptByReplica(keyed)
            end = BatchEnd(
                definition, state, inputs, timing, sinks, commit, kept, host.progressed, registries
            )
            self._batches = batches = Batches(state, planner, end, timing, tasks, over)
            keeper = ReplicaKeeper(self._description(files), state, batches, inputs, tasks, keyed, registries)
            self._gate_address = host.gate.open(definition.id, keeper)
            opened.callback(host.gate.shut, self._gate_address)
            opened.callback(batches.close)
            sinks.restore(start.local.seq, start.marks)
            self.looking: Looking | None = None  # shows a processor's state
            if keyed is not None:
                self.looking = Looking.at(definition, group.processor, keyed)
            self._closing = opened.pop_all()

    def _open_keyed(self, local: Boundary) -> KeyedState | None:
        if self._group.is_kept_by_spark:
            return None
        return open_keyed(self._directory, local, stateful=self.stateful)

    def _open_offsets(self, files: dict[str, str], state: ReplicaState) -> InputOffsets:
        definition, inputs = self.definition, self._group.inputs
        sources = {
            item.element: open_source(definition, item, files, self._directory)
            for item in inputs
            if item.topic is None
        }
        return InputOffsets(self._host.kafka, inputs, sources, definition.pace.batch_rows_max, state.poke)

    def _description(self, files: dict[str, str]) -> GroupDescription:
        kafka = self._host.kafka
        return GroupDescription(
            spec=self.definition.model_dump(mode="json"),
            kafka={"bootstrap": kafka.bootstrap, "security": kafka.security},
            files=files,
            directory=str(self._directory),
        )

    def begin(self) -> None:
        self.begun = True
        self._query = self._host.engine.start_query(
            self._group,
            f"{self.definition.id} on {self._host.node}",
            self._gate_address,
            spark_directory(self._directory),
            self._batches.on_spark_batch,
        )

    def is_active(self) -> bool:
        """Returns whether the query is active. The answer may be _ACTIVE_LOOK_S old."""
        now_s = monotonic()
        if now_s - self._active_at_s >= _ACTIVE_LOOK_S:
            self._active_at_s = now_s
            self._active = self._query is not None and self._query.isActive
        return self._active

    def exception(self) -> BaseException | None:
        """Returns the error that has ended the query, or None."""
        return self._query.exception() if self._query is not None else None

    @property
    def next_start(self) -> Boundary:
        """Returns where the next batch begins. This is the end of the running batch, if one runs."""
        return self._planner.next_start

    @property
    def keys(self) -> int | None:
        """Returns how many keys have a state, or None if the group keeps no state by key."""
        return self._keyed.count if self._keyed is not None and self.stateful else None

    @property
    def state_bytes(self) -> int | None:
        """Returns the size of all keys and their states. Returns None if Spark keeps the state, because then
        only the files have a size."""
        if self._group.is_kept_by_spark:
            return None
        return self._keyed.bytes if self._keyed is not None and self.stateful else 0

    def close(self, *, stuck: bool = False) -> None:
        """Ends the query after the batch that is ending. The run's state cannot be read any more. With
        `stuck`, the batch never ends, so this does not wait for it."""
        if (self._batches.let_go() or not self._group.is_planned) and not stuck:
            # Wait for the tasks to end by themselves: if Spark stops a task, it kills its Python process.
            self._batches.engine_idle.wait(LET_GO_S)
        self._end_query()
        self._closing.close()

    def _end_query(self) -> None:
        query, self._query = self._query, None
        if query is not None:
            try:
                query.stop()
            except Exception as error:
                log.debug("%s: stopping its query: %s", self.definition.id, text_of(error))
