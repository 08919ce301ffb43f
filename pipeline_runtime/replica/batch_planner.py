"""The gate of one replica: decides what each micro-batch processes, and when.

Spark is told at once that there is a next batch, by a number alone, its token: so it plans the batch and
starts its tasks before there are rows, and a task waits here. Where the batch ends is decided when the first
of its tasks asks: while the replica follows, it grants what the journal has committed, and to an armed
successor the batch that was announced; while it owns, what has arrived, no more often than the pace allows.

A batch that was never granted comes to nothing: its tasks are let go when the query ends, and it does not
count.

The task of a resident group (batch.group) stays: it hands over here what comes of a batch, and asks for
the next one. To Spark all of them are one batch, which comes to nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from time import monotonic, time

from pipeline_runtime.batch.gate_messages import GroupDescription, Payload, Slice, SliceRead, TaskPart
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.tasks import KeysShared, Tasks
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.journal.records import END_STAGE, Boundary, Ends
from pipeline_runtime.kafka.ahead import pack
from pipeline_runtime.kafka.clients import KafkaError
from pipeline_runtime.kafka.transactions import Doubtful, Fenced
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.core import (
    Announce,
    Facts,
    Follow,
    Own,
    OwnLast,
    ReleaseAlone,
    next_batch,
    successor,
)
from pipeline_runtime.replica.input_offsets import InputOffsets, slices_between
from pipeline_runtime.replica.local_state import LocalStateDamaged
from pipeline_runtime.replica.outputs import RejectedRecord
from pipeline_runtime.replica.pacing import CpuLoad
from pipeline_runtime.replica.release import GIVE_WAY_S, OwnerRelease
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.timing import BatchTiming

# How often an owner looks although nothing was told.
LOOK_S = 2.0
# How often an owner that is to release without a batch looks whether nothing has come.
RELEASE_LOOK_S = 0.05


class BatchPlanner:
    """Implements gate.GateKeeper."""

    def __init__(
        self,
        spec: GroupSpec,
        inputs: tuple[GroupInput, ...],
        state: ReplicaState,
        offsets: InputOffsets,
        cpu: CpuLoad,
        description: GroupDescription,
        ended: Boundary,
        *,
        flushes: bool,
        release: OwnerRelease,
        asked: Callable[[Seq], None],
        keyed: KeyedState | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """`ended`: where the local state stands. `keyed`: of a group with a keyed processor."""
        self._spec = spec
        self._inputs = inputs
        self._passed: Ends | None = None
        self._keys = {key for item in inputs for key in item.end_keys()}
        self._state = state
        self._offsets = offsets
        self._description = description
        self._ended = ended  # where the newest batch that counts has
        self._flushes = flushes
        self._end_stages = 2 if flushes else 1
        self._release = release
        self._keyed = keyed
        self._tasks = tasks or Tasks(1)
        self.timing = BatchTiming(spec, state, offsets, cpu, planned=self._tasks.planned_each)
        self.at_end: Callable[[Sequence[bytes]], None] | None = None  # of a batch of tasks that stay
        self._asked = asked  # told the seq of each batch that Spark has finished
        self._shifted_ms = 0  # by how much the batch that is about to be granted moves the sources' clocks
        self._closed = False
        self._deciding = threading.Lock()  # by one of its tasks, for all
        self._decided: int | None = None  # the token of the batch that `_slices` are of
        self._slices: list[Slice] = []

    def describe(self) -> GroupDescription:
        return self._description

    def first_token(self) -> int:
        self._state.connected.set()
        return 0

    def next_token(self, done: int) -> int:
        self._state.connected.set()
        return self._next_token(done)

    def tasks_of(self, token: int) -> list[TaskPart]:
        return self._tasks.planned(token)

    def part_processed(self, task: int, payload: Payload) -> None:
        assert self.at_end is not None, f"{self._spec.id} has no resident task"
        self._tasks.meet(task, bytes(payload), self.at_end)

    def states_between(self, first: str, end: str) -> list[tuple[str, str]]:
        with _damage_named():
            return self._keyed_state.between(first, end)

    def keys_between(self, first: str, end: str, most: int) -> list[str]:
        with _damage_named():
            return self._keyed_state.keys(first, end, most)

    def keep_states(self, states: Sequence[tuple[str | None, str | None]]) -> None:
        self._keyed_state.keep(states)

    def states_of(self, keys: Sequence[str | None], task: int) -> list[str | None]:
        try:
            self._tasks.take(keys, task)
        except KeysShared as error:
            self._state.fail(error)
            raise
        with _damage_named():
            return self._keyed_state.get(keys)

    @property
    def _keyed_state(self) -> KeyedState:
        assert self._keyed is not None, f"{self._spec.id} has no keyed state"
        return self._keyed

    # --- between two batches

    def _next_token(self, done: int) -> int:
        """`done` itself: there is none, as its query is to end."""
        self._finish()
        changed, release = self._state.changed, self._release
        with changed:
            changed.wait_for(lambda: self._is_ending or not release.gives_way, GIVE_WAY_S)
            if self._is_ending:
                changed.wait_for(lambda: self._closed, LOOK_S)
            if self._is_ending:
                return done
        self.timing.told()
        return done + 1

    @property
    def _is_ending(self) -> bool:
        return self._closed or self._state.draining or self._state.failure is not None

    def _finish(self) -> None:
        state = self._state
        with state.changed:
            if state.plan is not None and state.granted == state.local:
                self._ended = state.plan[1]
            rows = state.reads.all_rows
            self._tasks.processed(rows)
            # Of several inputs each has its share, rounded down.
            self.timing.finished(full=rows > self._spec.pace.batch_rows_max - len(self._keys) - 1)
            ended = self._ended
        self._asked(ended.seq)
        self._pass(self._start())
        state.no_batch_runs()

    def _start(self) -> Boundary:
        """Where the next batch begins: where the last one has ended, which a definition with other inputs may
        have processed. The first one's the first claim of the journal says."""
        with self._state.changed:
            view, ended = self._state.view, self._ended
            if ended.seq == 0 and view.start is not None:
                ended = Boundary(Seq(0), view.start, 0)
            moved = view.moved(ended)
        return moved if self._is_of_inputs(moved) else ended

    def _is_of_inputs(self, boundary: Boundary) -> bool:
        """Whether it says where this definition's inputs stand; else it is not its turn yet."""
        return self._keys <= boundary.ends.keys()

    def _pass(self, start: Boundary) -> None:
        if self._is_of_inputs(start) and self._passed is not start.ends:
            self._passed = start.ends
            self._offsets.passed(start.ends)

    # --- a task asks what to read

    def slices_of(self, token: int, task: int) -> list[Slice] | None:
        """The task's part of the batch, once that is granted. Returns None if the query ends before."""
        with self._deciding:
            if self._decided != token:
                if self._tasks.are_too_few:
                    return None
                self.timing.asked()
                granted = self._granted()
                if granted is None:
                    return None
                self._slices = self._slices_between(*granted)
                self._decided = token
            return self._tasks.share(self._slices, task)

    def finished(self) -> None:
        """A batch of tasks that stay has ended, and counts: they may ask for the next one."""
        self._finish()
        self._decided = None
        self.timing.told()

    def _granted(self) -> tuple[Boundary, Boundary] | None:
        try:
            return self._next()
        except (Fenced, Doubtful) as error:
            self._state.fail(error)
            return None

    def _next(self) -> tuple[Boundary, Boundary] | None:
        """The next batch's start and end, granted. None: the query ends."""
        state = self._state
        while True:
            with state.changed:
                if self._closed or state.failure is not None:
                    return None
                start = self._start()  # by its own CLAIM, which may have come meanwhile
                seen = state.version
                facts = self._facts()
                found = next_batch(facts, start.seq, fits=self._is_of_inputs(start))
                if isinstance(found, Follow):
                    self.timing.followed()
                    return self._grant(start, found.boundary)
                looks_s = LOOK_S
                if successor(facts.view, facts.directive.release, facts.permit) is not None:
                    looks_s = RELEASE_LOOK_S  # nothing may come any more, and then it releases alone
            match found:
                case ReleaseAlone():
                    self._release.alone(start.seq)
                case Own() | Announce() | OwnLast():
                    granted = self._own(start, found, seen, looks_s)
                    if granted is not None:
                        return granted
                case _:
                    state.wait_for_change(seen, looks_s)

    def _own(
        self, start: Boundary, found: Own | Announce | OwnLast, seen: int, remaining_s: float
    ) -> tuple[Boundary, Boundary] | None:
        """The owner's next batch, granted; None: nothing has come, or it is not its turn any more."""
        self._pass(start)
        end = self._arrived(start, found, seen, remaining_s)
        if end is None:
            return None
        match found:
            case Announce(_, last):
                self._release.announce(end, last=last)
            case OwnLast():
                self._release.end_with(found.seq)
            case _:
                self._release.reset()
        state = self._state
        with state.changed:
            if state.permit is None or state.draining or state.paused or self._closed:
                return None
            return self._grant(start, end, shifted_ms=self._shifted_ms)

    def _facts(self) -> Facts:
        """With `changed` held."""
        state = self._state
        releases = state.directive.release is not None and state.permit is not None
        if not releases:
            return state.facts(self._spec)
        return state.facts(
            self._spec,
            quiet=self.timing.is_quiet(),
            announced=self._release.announced,
            batch_ms=self.timing.usual_ms(),
        )

    def close(self) -> bool:
        """Let go of the tasks that wait; whether the batch that Spark may have begun comes to nothing: the
        batches are another query's from now on."""
        with self._state.changed:
            self._closed = True
            self._tasks.close()
            self._state.tell()
            return self._state.granted is None

    def _grant(
        self, start: Boundary, boundary: Boundary, *, shifted_ms: int | None = None
    ) -> tuple[Boundary, Boundary]:
        """With `changed` held."""
        self._state.grant(start, boundary, shifted_ms=shifted_ms)
        if self._keyed is not None:
            self._keyed.begin()
        self.timing.granted(own=shifted_ms is not None)
        return start, boundary

    def _arrived(
        self, start: Boundary, found: Own | Announce | OwnLast, seen: int, remaining_s: float
    ) -> Boundary | None:
        """Where the owner's batch ends; None: nothing yet, ask again."""
        state, offsets, timing = self._state, self._offsets, self.timing
        ending = self._ending(start.ends)
        far_ms = found.round_trip_ms if isinstance(found, OwnLast) else None
        begins_at_s = timing.begins_at_s(start.ends, ending=ending != start.ends, far_ms=far_ms)
        pause_s = begins_at_s - monotonic()
        if pause_s > 0:
            state.wait_for_change(seen, min(pause_s, remaining_s))
            return None
        now_ms = max(int(time() * 1000), start.batch_time_ms + 1)
        try:
            base, self._shifted_ms = start.ends, state.pause_shift_ms
            if self._shifted_ms:
                base = offsets.source_shifted(base, self._shifted_ms)
            oldest_at_s = timing.oldest_at_s()
            # What has come since may be at the far successor later than the RELEASE: it is left to that.
            by_s = inf if far_ms is None else monotonic() - far_ms / 1000
            ends = offsets.advance(base, now_ms, by_s=by_s)
            if ends == start.ends:
                ends = ending
            if ends != start.ends:
                timing.arrived_at_s = oldest_at_s or monotonic()
                return Boundary(found.seq, ends, now_ms)
            if offsets.has_sources:
                remaining_s = min(remaining_s, timing.look_s())
            state.wait_for_change(seen, remaining_s)
        except KafkaError:
            offsets.disconnect()  # the broker is away: asked again, for ever
            state.wait_for_change(seen, 0.2)
        return None

    def _ending(self, ends: Ends) -> Ends:
        """The next stage of a finished group's end: two flushes close its windows (the first moves
        the watermark, the second emits), and the last stage tells the readers of its outputs."""
        if not self._inputs:
            return ends
        with self._state.changed:
            told = self._state.view.ended
            topics_ended = all(
                key in told for item in self._inputs if item.topic is not None for key in item.end_keys()
            )
        stage = ends.get(END_STAGE, 0)
        if topics_ended and self._offsets.sources_ended(ends) and stage < self._end_stages:
            return {**ends, END_STAGE: stage + 1}
        return ends

    def is_last_stage(self, ends: Ends) -> bool:
        return bool(ends.get(END_STAGE, 0) == self._end_stages)

    def _slices_between(self, start: Boundary, end: Boundary) -> list[Slice]:
        slices = slices_between(self._inputs, start.ends, end.ends, end.batch_time_ms, flushes=self._flushes)
        return [self._with_records(part) for part in slices]

    def _with_records(self, part: Slice) -> Slice:
        """The slice, with its rows if they have been read ahead."""
        item = self._inputs[part.input] if part.input >= 0 else None
        if item is None or item.topic is None:
            return part
        found = self._offsets.records(item.end_keys()[part.partition], part.start, part.end)
        return part if found is None else replace(part, records=[pack(record) for record in found])

    def slice_read(self, read: SliceRead) -> None:
        item = self._inputs[read.input]
        rejected = [
            RejectedRecord(item.consumer, item.source, read.partition, each.offset, each.raw, each.reason)
            for each in read.rejects
        ]
        ended = [item.end_keys()[read.partition]] if read.ended else []
        self._state.task_has_read((read.input, read.partition), read.rows, rejected, ended)


@contextmanager
def _damage_named() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise LocalStateDamaged(str(error)) from error
