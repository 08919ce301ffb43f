"""Settles a batch that has been processed: the owner commits it, a follower checks it.

1. If the owner has only announced a batch, a successor that runs it waits for the COMMIT.
2. A follower finds the batch's seq in the journal. It checks that the journal says the same, and writes
   nothing.
3. The owner writes outputs, dead letters and COMMIT in one transaction, and with the last batch also the
   RELEASE.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import time
from typing import Any

from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.journal.records import Boundary, Commit
from pipeline_runtime.kafka.limits import TopicLimits
from pipeline_runtime.kafka.transactions import Fenced
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.core import Abandon, Await, Check, Emit, Granted, at_sink
from pipeline_runtime.replica.outputs import BatchRecords, element_rows, outgoing
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.run_registries import RunRegistries
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.timing import BatchTimes, BatchTiming


class NotDeterministic(RuntimeError):
    """A replayed batch differs from what its owner committed."""


class NotCommitted(RuntimeError):
    """The batch that the owner had announced was never committed: another one takes its place."""


class BatchCommit:
    def __init__(
        self,
        spec: GroupSpec,
        state: ReplicaState,
        timing: BatchTiming,
        release: OwnerRelease,
        over: threading.Event,
        node: str,
        limits: Callable[[str], TopicLimits],
        registries: RunRegistries,
    ) -> None:
        """`over` is set when the run is to end: then a batch stops waiting for its COMMIT. `limits`: what a
        topic accepts."""
        self._limits = limits
        self._spec = spec
        self._state = state
        self._timing = timing
        self._release = release
        self._over = over
        self._node = node
        self._registries = registries

    def settle(
        self,
        batch_output: BatchOutput,
        boundary: Boundary,
        marks: dict[str, Any],
        times: BatchTimes,
        *,
        last: bool,
    ) -> bool:
        """Commits or checks the batch that ends at `boundary`. `marks` says where the sinks stand after it.

        `last`: no batch follows, so the readers of the outputs are told. Returns whether it was the first
        commit by this permit. Raises Fenced, Doubtful, NotCommitted,
        NotDeterministic and SchemaRegistryError.
        """
        with self._state.changed:
            reads = self._state.reads
            rows_in, rejected, ended = reads.all_rows, reads.all_rejected(), tuple(sorted(reads.ended))
            warms_up = self._state.directive.succeed is not None
        committed, permit = self._decision(boundary)
        if committed is None or warms_up:
            # A successor makes its outputs, too, and drops them: so this code is warm when it owns.
            now = int(time() * 1000)
            out = outgoing(self._spec, batch_output, rejected, ending=last, limits=self._limits, now_ms=now)
        if committed is not None:
            self._check(committed, boundary, marks)
            return False
        assert permit is not None
        with self._state.changed:
            before, schemas = self._state.totals, self._state.schemas
            accepted = self._state.directive.accepts
        dead_letters = sum(out.dead_letters.values())
        elements = element_rows(self._spec, batch_output.counts, rows_in, out.dead_letters)
        wait_ms = times.wait_ms()
        commit = Commit(
            permit.epoch,
            boundary,
            rows_in,
            out.rows_out,
            dead_letters,
            marks,
            ended,
            self._node,
            self._spec.version,
            None if wait_ms is None else round(wait_ms),
            before.plus(rows_in, out.rows_out, dead_letters, elements),
            self._registries.confirm(schemas, boundary.seq, accepted),
        )
        return self._commit(permit, commit, out, times)

    def _decision(self, boundary: Boundary) -> tuple[Commit | None, CommitPermit | None]:
        """Returns what the journal says of this batch, or else the permit to commit it."""
        state = self._state
        with state.changed:
            granted = Granted(boundary, state.ahead, state.view.granted)
            while True:
                match at_sink(state.facts(self._spec, stops=self._over.is_set()), granted):
                    case Check(commit):
                        return commit, None
                    case Emit():
                        return None, state.permit
                    case Abandon(why, fenced):
                        raise (Fenced if fenced else NotCommitted)(f"{self._spec.id}: {why}")
                    case Await():
                        state.changed.wait(1.0)

    def _commit(self, permit: CommitPermit, commit: Commit, out: BatchRecords, times: BatchTimes) -> bool:
        requests = self._release.with_batch(commit, out.records)
        if requests is None:
            requests = permit.commit([commit], out.records, written=self._timing.written)
        reached("committed")
        self._measure(out, times)
        first = self._state.committed(requests, commit)
        if first:
            reached("first-commit")
        return first

    def _check(self, committed: Commit, boundary: Boundary, marks: dict[str, Any]) -> None:
        if committed.boundary.ends != boundary.ends:
            raise NotDeterministic(
                f"{self._spec.id}: seq {boundary.seq} was committed up to {committed.boundary.ends},"
                f" but this replica read up to {boundary.ends}"
            )
        if committed.marks != marks:
            raise NotDeterministic(
                f"{self._spec.id}: at seq {boundary.seq} the owner's sinks stood at {committed.marks},"
                f" and this replica's stand at {marks}: an operator of the group is not deterministic"
            )
        self._registries.confirm(committed.schemas, boundary.seq)

    def _measure(self, out: BatchRecords, times: BatchTimes) -> None:
        latency_ms = times.wait_ms() if out.rows_out else None
        with self._state.changed:
            self._state.measures.committed(out.rows_out, out.stream_bytes, int(time() * 1000), latency_ms)
