"""Runs the batches of one run of a group's query: each batch begins when its tasks ask, and ends with their
rows.

Spark learns at once that there is a next batch, by a number alone, its token. So Spark plans the batch and
starts its tasks before there are rows, and a task waits in `slices_of`. When the first task asks,
`batch_planner` decides where the batch ends. A batch that was never granted comes to nothing: its tasks are
let go when the query ends.

A batch ends in one of two ways. If Spark plans each batch, Spark hands over the rows (`on_spark_batch`).
Tasks that stay (batch.group) hand over their rows themselves, and ask for the next batch. To Spark, all
batches of such tasks are one batch without rows.

If more rows wait than a batch takes, an owner's tasks begin the next batch while a thread commits the last
one. Until that commit, the next batch is tentative: only its own tasks see the state that the last batch has
left. If the last batch comes to nothing, the run ends, and the next batch with it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import monotonic

from pipeline_runtime.batch.gate_messages import Payload, Slice
from pipeline_runtime.batch.output import merged, unpacked
from pipeline_runtime.batch.tasks import Tasks
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.replica.batch_end import BatchEnd
from pipeline_runtime.replica.batch_planner import BatchPlanner
from pipeline_runtime.replica.engine import BatchRows
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.timing import BatchTimes, BatchTiming


class Stopped(RuntimeError):
    """The query was already over when a batch came to its end."""


class Batches:
    """Keeps the first error of a batch in the state's `failure`. Later errors follow from it: a task that
    stays fails because its batch has failed, and Spark's batch fails because of the task."""

    def __init__(
        self,
        state: ReplicaState,
        planner: BatchPlanner,
        end: BatchEnd,
        timing: BatchTiming,
        tasks: Tasks,
        over: threading.Event,
    ) -> None:
        """`over` is set when the run is to end."""
        self._state = state
        self._planner = planner
        self._end = end
        self._timing = timing
        self._tasks = tasks
        self._over = over
        self._beginning = threading.Lock()  # one task has the batch granted for all tasks
        self._ending = threading.Lock()  # held while a batch ends
        self._commit: threading.Thread | None = None  # commits a batch beside the next one
        self._begun: tuple[int, list[Slice]] | None = None  # the newest batch's token and slices
        self._delivered: set[int] = set()  # the tasks that have processed their part of this batch
        self._number = 0  # the engine's newest batch
        self._closed = False
        self.engine_idle = threading.Event()  # the engine runs no batch
        self.engine_idle.set()

    # --- a batch begins

    def next_token(self, done: int) -> int:
        """Returns the token of the batch after `done`, or `done` itself if the query is to end."""
        self._await_commit()
        self._count_rows()
        self._planner.finish()
        return done + 1 if self._planner.wait_for_turn() else done

    def slices_of(self, token: int, task: int) -> list[Slice] | None:
        """Waits until the batch is granted, and returns the task's part of it. Returns None if the query ends
        before, or if the task is to end because the group needs more tasks."""
        with self._beginning:
            if self._begun is None or self._begun[0] != token:
                if self._tasks.are_too_few:
                    return None
                slices = self._planner.grant_next()
                if slices is None:
                    return None
                self._end.begin()
                self._begun = token, slices
                self._delivered = set()
            elif task in self._delivered:
                return None  # the batch was dropped: its tasks were stopped, or one of them failed
            return self._tasks.share(self._begun[1], task)

    # --- a batch ends

    def part_processed(self, task: int, payload: Payload) -> None:
        """Notes that a resident task has processed its part. Returns when the next batch may begin, or when
        this batch was dropped."""
        self._delivered.add(task)
        self._tasks.meet(task, bytes(payload), self._end_with_parts)

    def _end_with_parts(self, parts: Sequence[bytes]) -> None:
        times = self._timing.of_batch(self._await_commit())
        with self._ending:
            if self._closed:  # another run may be active by now, and this is no failure of that run
                raise Stopped("a batch has come to its end when its query was over")
            if self._state.failure is not None:
                raise Stopped("the batch before this one has come to nothing")
            try:
                boundary = self._running()
                assert boundary is not None, "a batch that has rows was granted"
                self._end.processed()
                self._count_rows()
                if self._planner.run_ahead():
                    self._commit = threading.Thread(
                        target=self._commit_beside,
                        args=(parts, boundary, times),
                        name="commit",
                        daemon=True,
                    )
                    self._commit.start()
                else:
                    self._end.end(merged(map(unpacked, parts)), boundary, self._number, times)
                    self._planner.finish()
                self._begun = None
            except BaseException as error:
                self._state.fail(error)
                raise

    def _commit_beside(self, parts: Sequence[bytes], boundary: Boundary, times: BatchTimes) -> None:
        with self._ending:
            if self._closed:
                return
            try:
                self._end.end(merged(map(unpacked, parts)), boundary, self._number, times)
                self._planner.committed(boundary)
            except BaseException as error:
                self._state.fail(error)

    def _await_commit(self) -> float:
        """Waits until no batch is committed beside the next one. Returns how many seconds that took."""
        began_at_s = monotonic()
        if self._commit is not None:
            self._commit.join()
        return monotonic() - began_at_s

    def on_spark_batch(self, rows: BatchRows, number: int) -> None:
        """Runs the engine's batch of that number, for foreachBatch. On return, the batch counts."""
        self.engine_idle.clear()
        self._number = number
        try:
            table = rows.toArrow()  # Spark's tasks wait here until the batch is granted
            boundary = self._running()
            if self._tasks.planned_each and boundary is not None:
                with self._ending:
                    if self._closed:
                        raise Stopped(f"stopped while it processed seq {boundary.seq}")
                    self._end.processed()
                    made, times = rows.output(table, boundary.batch_time_ms), self._timing.of_batch()
                    if self._state.ahead:  # otherwise no owner writes it
                        made = self._end.written(made)
                    self._end.end(made, boundary, self._number, times)
        except BaseException as error:
            self._state.fail(error)
            raise
        finally:
            self.engine_idle.set()

    def _running(self) -> Boundary | None:
        """Returns where the running batch ends, or None if none was granted because the query ends."""
        with self._state.changed:
            span = self._state.span
            return None if self._state.granted is None or span is None else span.end

    def _count_rows(self) -> None:
        with self._state.changed:
            rows = self._state.reads.all_rows
        self._tasks.processed(rows)

    # --- the run ends

    def let_go(self) -> bool:
        """Stops the tasks that wait, and a batch that waits for its COMMIT, because the run is to end.
        Returns whether no batch was granted. A batch that Spark may have begun is then dropped."""
        with self._state.changed:
            self._over.set()
            self._tasks.close()
            self._state.tell()
            return self._state.granted is None

    def close(self) -> None:
        """Waits for the batch that is ending, and refuses later ones."""
        with self._ending:
            self._closed = True
            self._end.close()
