"""Ends a batch: takes what the batch has made, and stores the state.

1. Write the files of the group's sink elements, durably. Their marks belong to the batch.
2. Commit the batch as the owner, or check it as a follower (`batch_commit`).
3. Store the state together with the place where the batch has ended.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.batch.written import as_written
from pipeline_runtime.formats.schema_registry import Registries
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.batch_commit import BatchCommit
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.local_state import BatchState
from pipeline_runtime.replica.sink_files import SinkFiles
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.timing import BatchTimes, BatchTiming


class BatchEnd:
    def __init__(
        self,
        spec: GroupSpec,
        state: ReplicaState,
        inputs: BatchInputs,
        timing: BatchTiming,
        sinks: SinkFiles,
        commit: BatchCommit,
        kept: BatchState,
        progressed: Callable[[bool], None],
        registries: Registries,
    ) -> None:
        """`progressed` is called after each batch. It gets whether others wait to hear of the batch: that is
        so for an owner's first batch, and for the last one."""
        self._spec = spec
        self._state = state
        self._inputs = inputs
        self._timing = timing
        self._sinks = sinks
        self._commit = commit
        self._kept = kept
        self._progressed = progressed
        self._registries = registries

    def begin(self) -> None:
        """Begins a batch. Drops what an earlier batch has left that came to nothing."""
        self._kept.begin()

    def processed(self) -> None:
        """Says that the running batch changes its state no more, so the next batch may begin."""
        self._kept.processed()

    def written(self, batch_output: BatchOutput) -> BatchOutput:
        """Returns what a batch that Spark has planned puts out, as its topics have it. Raises
        SchemaRegistryError."""
        return as_written(batch_output, self._spec, self._registries)

    def end(self, batch_output: BatchOutput, boundary: Boundary, number: int, times: BatchTimes) -> None:
        """Ends the batch that ends at `boundary` and has made all its rows. `number` is the engine's. Raises
        what BatchCommit.settle raises, and LocalStateDamaged."""
        marks = self._sinks.write(batch_output, boundary.seq)
        last = self._inputs.has_ended(boundary.ends)
        first = self._commit.settle(batch_output, boundary, marks, times, last=last)
        # Before the engine finishes the batch: whoever takes a checkpoint then asks for these lengths.
        self._sinks.note(boundary.seq)
        self._kept.commit(number, boundary)
        state = self._state
        with state.changed:
            rows, rows_max = state.reads.all_rows, self._spec.pace.batch_rows_max
            state.measures.batch(rows, self._timing.batch_ms(times), rows_max)
            state.processed(boundary, ended=last)
        self._progressed(first or last)

    def close(self) -> None:
        self._sinks.close()
