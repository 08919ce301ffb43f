"""The end of every batch: commit it as the owner, or check it as a follower.

1. Take what the batch has made from the tasks that stay, or collect it from Spark (once, as Arrow), and run
   the elements behind the stateful one on it.
2. Write the files of the group's sink elements, durably; their marks belong to the batch.
3. A successor that runs a batch which its owner has only announced waits for the COMMIT.
4. Follower: the journal has this seq already. Check that it says the same, and emit nothing.
5. Owner: outputs, dead letters and COMMIT in one transaction; with the last batch the RELEASE, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic, time
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.output import BatchOutput, merged, unpacked
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.journal.records import Boundary, Commit
from pipeline_runtime.kafka.transactions import Fenced
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import SinkWriter
from pipeline_runtime.replica.batch_planner import BatchPlanner
from pipeline_runtime.replica.core import Abandon, Await, Check, Emit, Granted, at_sink
from pipeline_runtime.replica.engine import BatchRows
from pipeline_runtime.replica.outputs import Outgoing, element_rows, outgoing
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.state import ReplicaState


class NotDeterministic(RuntimeError):
    """A replayed batch differs from what its owner committed."""


class Stopped(RuntimeError):
    """A batch has come to its end when its query was to be over."""


class NotCommitted(RuntimeError):
    """The batch that the owner had announced never was committed: another one takes its place."""


class BatchSink:
    """Handed to foreachBatch. What it raises is kept in the state's `failure`: the first, since a resident
    task fails of what its batch has raised, and Spark's batch fails of that."""

    def __init__(
        self,
        spec: GroupSpec,
        group: GroupFacts,
        state: ReplicaState,
        planner: BatchPlanner,
        release: OwnerRelease,
        node: str,
        ended: Callable[[int, Boundary], None],
        progressed: Callable[[bool], None],
        growing: GrowingFiles,
    ) -> None:
        """`ended`: keeps, with the state, where Spark's batch of that number has ended. `progressed`: told
        of each batch that is done, and whether others wait to hear of it: an owner's first, and the last."""
        self.growing = growing
        self._spec = spec
        self._group = group
        self._state = state
        self._planner = planner
        self._release = release
        self._node = node
        self._ended = ended
        self._progressed = progressed
        self._writers: dict[str, SinkWriter] = {}
        self._marks: dict[str, Any] = {}
        self._closed = True
        self._gave_up = False
        self._ending = threading.Lock()  # held while a batch ends
        self._spark: tuple[BatchRows, int] | None = None  # what foreachBatch was called with last
        self.over = threading.Event()  # no batch of Spark's is under way
        self.over.set()

    def restore(self, local: Seq, marks: dict[str, Any]) -> None:
        """Bring the sinks' files back to where the local state stands, at `local`."""
        self.close()
        self._closed = False
        self._marks = {}
        for element in self._group.sinks:
            writer = self._group.open_sink(element)
            writer.restore(marks.get(element))
            self._writers[element] = writer
            if element in marks:
                self._marks[element] = marks[element]
        self.growing.note(local, self._lengths())

    def give_up(self) -> None:
        """A batch that waits for its COMMIT waits no longer: its query is to end."""
        with self._state.changed:
            self._gave_up = True
            self._state.tell()

    def close(self) -> None:
        """Waits for the batch that ends right now."""
        with self._ending:
            self._closed = True
            for writer in self._writers.values():
                writer.close()
            self._writers = {}

    def __call__(self, rows: BatchRows, batch_id: int) -> None:
        self.over.clear()
        self._spark = rows, batch_id
        try:
            table = rows.toArrow()  # its tasks wait for what is granted
            plan = self._granted()
            if self._group.is_planned and plan is not None:
                with self._ending:
                    self._process(self._spark_output(table, plan), plan)
        except BaseException as error:
            self._state.fail(error)
            raise
        finally:
            self.over.set()

    def resident_batch(self, made: Sequence[bytes]) -> None:
        """The end of a batch that tasks which stay have processed, while Spark waits for them."""
        with self._ending:
            if self._closed:  # and another run may be on, whose failure this is not
                raise Stopped(f"{self._spec.id}: a batch has come to its end when its query was over")
            try:
                plan = self._granted()
                assert plan is not None, "it was, since it has rows"
                self._process(merged(map(unpacked, made)), plan)
                self._planner.finished()
            except BaseException as error:
                self._state.fail(error)
                raise

    def _granted(self) -> Boundary | None:
        """Where the batch that is running ends; None: nothing was granted, its query ends."""
        with self._state.changed:
            plan = self._state.plan
            return None if self._state.granted is None or plan is None else plan[1]

    def _spark_output(self, table: pa.Table, boundary: Boundary) -> BatchOutput:
        """What Spark has made of the batch."""
        assert self._spark is not None
        return self._spark[0].output(table, boundary.batch_time_ms)

    def _process(self, made: BatchOutput, boundary: Boundary) -> None:
        # 1
        assert self._spark is not None
        _, batch_id = self._spark
        if self._closed:
            raise Stopped(f"{self._spec.id}: stopped while it processed seq {boundary.seq}")
        # 2
        marks = self._write_sinks(made, boundary)
        with self._state.changed:
            rows_in = self._state.reads.all_rows
            rejected = self._state.reads.all_rejected()
            ended = tuple(sorted(self._state.reads.ended))
            warming = self._state.directive.succeed is not None
        # 3
        committed, permit = self._decision(boundary)
        if committed is None or warming:
            ending = self._planner.is_last_stage(boundary.ends)
            # A successor has run this code before it counts; what it makes of it goes nowhere.
            out = outgoing(self._spec, made, rejected, ending=ending)
        first = False
        if committed is not None:
            # 4
            self._check(committed, boundary, marks)
        else:
            # 5
            assert permit is not None
            commit = Commit(
                permit.epoch,
                boundary,
                rows_in,
                out.rows_out,
                out.dead_letters,
                marks,
                ended,
                self._node,
                self._spec.version,
            )
            first = self._commit(permit, commit, out)
        # Before Spark finishes the batch: whoever takes a snapshot of it asks for these.
        self.growing.note(boundary.seq, self._lengths())
        self._ended(batch_id, boundary)
        with self._state.changed:
            self._state.measures.element_rows(element_rows(self._spec, made.counts, rows_in))
            self._state.measures.batch(rows_in, self._planner.timing.batch_ms())
            ended_now = self._planner.is_last_stage(boundary.ends)
            self._state.processed(boundary, ended=ended_now)
        self._progressed(first or ended_now)

    def _decision(self, boundary: Boundary) -> tuple[Commit | None, CommitPermit | None]:
        """What the journal says of this batch, else the permit to commit it. Raises Fenced, NotCommitted."""
        state = self._state
        with state.changed:
            granted = Granted(boundary, state.ahead, state.view.granted)
            while True:
                match at_sink(state.facts(self._spec, stops=self._gave_up), granted):
                    case Check(commit):
                        return commit, None
                    case Emit():
                        return None, state.permit
                    case Abandon(why, fenced):
                        raise (Fenced if fenced else NotCommitted)(f"{self._spec.id}: {why}")
                    case Await():
                        state.changed.wait(1.0)

    def _commit(self, permit: CommitPermit, commit: Commit, out: Outgoing) -> bool:
        """Whether it was the first by this permit."""
        requests = self._release.with_batch(commit, out.records)
        if requests is None:
            requests = permit.commit([commit], out.records)
        self._count(out)
        first = self._state.committed(requests)
        if first:
            reached("first-commit")
        return first

    def _write_sinks(self, made: BatchOutput, boundary: Boundary) -> dict[str, Any]:
        for element, source in self._group.sinks.items():
            self._marks[element] = self._writers[element].write(made.sinks[source], boundary.seq)
        return dict(self._marks)

    def _lengths(self) -> dict[str, int]:
        """Of the sinks' files that only grow, by their path in the replica directory."""
        return {
            f"elements/{element}/{name}": length
            for element, writer in self._writers.items()
            for name, length in writer.lengths(self._marks.get(element)).items()
        }

    def _check(self, committed: Commit, boundary: Boundary, marks: dict[str, Any]) -> None:
        if committed.boundary.ends != boundary.ends:
            raise NotDeterministic(
                f"{self._spec.id}: seq {boundary.seq} was committed up to {committed.boundary.ends},"
                f" but this replica read up to {boundary.ends}"
            )
        if committed.marks != marks:
            raise NotDeterministic(
                f"{self._spec.id}: at seq {boundary.seq} the owner's sinks stood at {committed.marks},"
                f" this replica's at {marks}: an operator of the group is not deterministic"
            )

    def _count(self, out: Outgoing) -> None:
        arrived_at_s = self._planner.timing.arrived_at_s
        latency_ms = None
        if out.rows_out and arrived_at_s is not None:
            latency_ms = (monotonic() - arrived_at_s) * 1000
        with self._state.changed:
            self._state.measures.committed(
                out.rows_out, out.dead_letters, out.stream_bytes, int(time() * 1000), latency_ms
            )
