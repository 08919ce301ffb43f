"""Decides what a replica's next batch processes, and when it begins.

A follower gets what the journal has committed. An armed successor also gets the batch that the owner has
announced. The owner gets the rows that have arrived, no more often than the pace allows. `core.next_batch`
decides which of these it is. This module gathers the facts for that decision, and waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from time import monotonic, time

from pipeline_runtime.batch.gate_messages import Slice
from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.kafka.clients import KafkaError
from pipeline_runtime.kafka.transactions import Doubtful, Fenced
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.core import (
    Announce,
    Facts,
    Follow,
    Own,
    OwnLast,
    ReleaseAlone,
    may_run_ahead,
    next_batch,
    successor,
)
from pipeline_runtime.replica.pacing import URGENT_MS
from pipeline_runtime.replica.registry_wait import is_reached
from pipeline_runtime.replica.release import GIVE_WAY_S, OwnerRelease
from pipeline_runtime.replica.state import BatchSpan, ReplicaState
from pipeline_runtime.replica.timing import BatchTiming

LOOK_S = 2.0
"""How often an owner looks again without a reason."""
RELEASE_LOOK_S = 0.05
"""How often an owner looks again that may release without a batch, because no row has come."""
BROKER_AWAY_S = 0.2


class BatchPlanner:
    """Plans the batches of one run. Only one thread at a time uses it; Batches makes sure of that."""

    def __init__(
        self,
        spec: GroupSpec,
        state: ReplicaState,
        inputs: BatchInputs,
        timing: BatchTiming,
        release: OwnerRelease,
        over: threading.Event,
        local: Boundary,
        remember: Callable[[Seq], None],
    ) -> None:
        """`over` is set when the run is to end. `local`: where the local state stands. `remember` is called
        with the seq of each batch that counts, before the next one may begin."""
        self._spec = spec
        self._state = state
        self._inputs = inputs
        self._timing = timing
        self._release = release
        self._over = over
        self._ended = local  # the end of the newest batch that was processed
        self._counted = local  # the end of the newest batch that is final
        self._remember = remember

    # --- between two batches

    def finish(self) -> None:
        """Notes that no batch is running any more: the last one has ended, or was dropped."""
        state = self._state
        with state.changed:
            if state.span is not None and state.granted == state.local:
                self._counted = state.span.end
            self._ended = self._counted
        self._remember(self._counted.seq)
        self._note_size()
        self._processed()
        state.no_batch_runs()

    def run_ahead(self) -> bool:
        """Notes that the running batch was processed. Returns whether the next batch may begin during the
        commit of this one. That is so if this replica may own the next batch, and if more rows wait than a
        batch takes. The caller then calls `committed` after the commit."""
        state = self._state
        self._note_size()
        with state.changed:
            span = state.span
            assert span is not None, "a batch was granted"
            own = state.ahead and not self._release.releases_now
            if not own or not may_run_ahead(self._facts()) or not self._timing.more_waits(span.end.ends):
                return False
            self._ended = span.end
            state.begin_commit()
        self._processed()
        return True

    def committed(self, boundary: Boundary) -> None:
        """Notes that the batch that ends at `boundary` is final. The next batch may have begun already."""
        self._counted = boundary
        self._remember(boundary.seq)
        self._state.batch_is_over()

    def _note_size(self) -> None:
        with self._state.changed:
            rows = self._state.reads.all_rows
        self._timing.finished(full=self._inputs.fill(rows, self._spec.pace.batch_rows_max))

    def _processed(self) -> None:
        self._inputs.passed(self._start())
        self._timing.told()

    def wait_for_turn(self) -> bool:
        """Waits until the engine may learn of a next batch. Returns False if the query is to end."""
        changed, release = self._state.changed, self._release
        with changed:
            changed.wait_for(lambda: self._is_ending or not release.gives_way, GIVE_WAY_S)
            if self._is_ending:
                changed.wait_for(self._over.is_set, LOOK_S)
            if self._is_ending:
                return False
        self._timing.told()
        return True

    @property
    def _is_ending(self) -> bool:
        return self._is_lost or self._state.draining

    @property
    def _is_lost(self) -> bool:
        return self._over.is_set() or self._state.failure is not None

    @property
    def next_start(self) -> Boundary:
        """Returns where the next batch begins. This is the end of the newest running batch, if one runs."""
        with self._state.changed:
            state = self._state
            span = state.newest_span
            if state.granted is not None and span is not None:
                return span.end
            if self._ended.seq == 0 and state.view.start is not None:
                return state.view.moved(Boundary(Seq(0), state.view.start, 0))
            return state.view.moved(self._ended)

    def _start(self) -> Boundary:
        """Returns where the next batch begins: where the last one has ended.

        The journal's first claim says where the group's first batch begins. If a definition has other inputs,
        its CLAIM says where these begin. Until that CLAIM, a batch of the definition before it may be next.
        """
        with self._state.changed:
            view, ended = self._state.view, self._ended
            if ended.seq == 0 and view.start is not None:
                ended = Boundary(Seq(0), view.start, 0)
            moved = view.moved(ended)
        return moved if self._inputs.fits(moved) else ended

    # --- the next batch

    def grant_next(self) -> list[Slice] | None:
        """Waits for the next batch and grants it. Returns what its tasks read, or None if the query ends."""
        self._timing.asked()
        try:
            granted = self._next()
        except (Fenced, Doubtful) as error:
            self._state.fail(error)
            return None
        if granted is None:
            return None
        with self._state.changed:
            followed = granted.end.seq in self._state.view.commits
        return self._inputs.slices(*granted, followed=followed)

    def _next(self) -> BatchSpan | None:
        state = self._state
        while True:
            with state.changed:
                if self._is_lost:
                    return None
                start = self._start()  # this replica's own CLAIM may have moved the start meanwhile
                seen_version = state.version
                facts = self._facts(waits=self._waits_at(start))
                decision = next_batch(facts, start.seq, fits=self._inputs.fits(start))
                if isinstance(decision, Follow):
                    self._timing.followed()
                    return self._grant(start, decision.boundary)
                looks_s = LOOK_S
                if successor(facts.view, facts.directive.release, facts.permit) is not None:
                    looks_s = RELEASE_LOOK_S
            match decision:
                case ReleaseAlone():
                    self._release.alone(start.seq)
                case Own() | Announce() | OwnLast():
                    granted = self._own(start, decision, seen_version, looks_s)
                    if granted is not None:
                        return granted
                case _:
                    self._look_while_paused(start)
                    state.wait_for_change(seen_version, looks_s)

    def _look_while_paused(self, start: Boundary) -> None:
        """Counts the rows that wait for an owner that begins no batch."""
        if (self._state.paused or self._state.waits is not None) and self._state.permit is not None:
            try:
                self._inputs.offsets.look(start.ends)
            except KafkaError:
                self._inputs.offsets.disconnect()

    def _waits_at(self, start: Boundary) -> bool:
        """Returns whether the batch that begins at `start` has to wait for a schema registry. The caller
        holds `changed`."""
        waits = self._state.waits
        return waits is not None and is_reached(waits, start.ends)

    def _facts(self, *, waits: bool = False) -> Facts:
        """Returns the present facts. The caller holds `changed`."""
        state = self._state
        if state.directive.release is None or state.permit is None:
            return state.facts(self._spec, waits=waits)
        return state.facts(
            self._spec,
            quiet=self._timing.is_quiet(),
            announced=self._release.announced,
            batch_ms=self._timing.usual_ms(),
            waits=waits,
        )

    def _own(
        self, start: Boundary, decision: Own | Announce | OwnLast, seen_version: int, remaining_s: float
    ) -> BatchSpan | None:
        """Grants the owner's next batch. Returns None if nothing has come, or it is no longer this replica's
        turn."""
        self._inputs.passed(start)
        arrived = self._arrived(start, decision, seen_version, remaining_s)
        if arrived is None:
            return None
        end, shifted_ms = arrived
        match decision:
            case Announce(_, last):
                self._release.announce(end, last=last)
            case OwnLast():
                self._release.end_with(decision.seq)
            case _:
                self._release.reset()
        state = self._state
        with state.changed:
            permit = state.permit
            if permit is None or state.draining or state.paused or state.held or self._is_lost:
                return None
            alone = not state.committing
            granted = self._grant(start, end, shifted_ms=shifted_ms)
            is_urgent = alone and state.latency_ms(self._spec) <= URGENT_MS
        if is_urgent:
            permit.expect_commit()
        if not alone:
            reached("ahead")
        return granted

    def _grant(self, start: Boundary, end: Boundary, *, shifted_ms: int | None = None) -> BatchSpan:
        """`shifted_ms`: as ReplicaState.grant says. The caller holds `changed`."""
        self._state.grant(start, end, shifted_ms=shifted_ms)
        self._timing.granted(own=shifted_ms is not None)
        return BatchSpan(start, end)

    def _as_one(self, decision: Own | Announce | OwnLast) -> int:
        """Returns how many usual batches the owner's next batch may be as large as. It is 1 in a release, and
        if another replica follows batch by batch, because that replica processes each batch after the
        owner."""
        as_one = self._timing.batches_as_one
        if as_one == 1 or not isinstance(decision, Own):
            return 1
        with self._state.changed:
            is_alone = may_run_ahead(self._facts()) and not self._state.directive.followed
        return as_one if is_alone else 1

    def _arrived(
        self, start: Boundary, decision: Own | Announce | OwnLast, seen_version: int, remaining_s: float
    ) -> tuple[Boundary, int] | None:
        """Returns where the owner's batch ends, and by how much it moves the sources' clocks. If it is too
        early or no row has come, it waits for some time and returns None."""
        state, timing = self._state, self._timing
        if state.committing and not timing.more_waits(start.ends):
            state.wait_for_change(seen_version, remaining_s)
            return None
        with state.changed:
            ending = self._inputs.next_stage(start.ends, state.view.ended)
        far_ms = decision.round_trip_ms if isinstance(decision, OwnLast) else None
        begins_at_s = timing.begins_at_s(start.ends, ending=ending != start.ends, far_ms=far_ms)
        pause_s = begins_at_s - monotonic()
        if pause_s > 0:
            timing.pauses(begins_at_s)
            state.wait_for_change(seen_version, min(pause_s, remaining_s))
            return None
        now_ms = max(int(time() * 1000), start.batch_time_ms + 1)
        offsets = self._inputs.offsets
        try:
            base, shifted_ms = start.ends, state.pause_shift_ms
            if shifted_ms:
                base = offsets.source_shifted(base, shifted_ms)
            # Rows that have come since then may reach the far successor after the RELEASE, so the successor
            # processes them.
            by_s = inf if far_ms is None else monotonic() - far_ms / 1000
            ends = offsets.advance(base, now_ms, by_s=by_s, as_one=self._as_one(decision))
            for key, at in (state.waits or {}).items():
                ends = {**ends, key: min(ends[key], at)} if key in ends else ends
            if ends == start.ends:
                ends = ending
            tick_in_s = self._inputs.tick_in_s(start.ends, timing.since_granted_s)
            if ends != start.ends or not tick_in_s:
                timing.arrived_at_s = offsets.arrived_at_s(base, ends, now_ms)
                return Boundary(decision.seq, ends, now_ms), shifted_ms
            if offsets.has_sources:
                remaining_s = min(remaining_s, timing.look_s())
            remaining_s = min(remaining_s, tick_in_s)
            state.wait_for_change(seen_version, remaining_s)
        except KafkaError:
            offsets.disconnect()  # the broker is away, and is asked until it answers
            state.wait_for_change(seen_version, BROKER_AWAY_S)
        return None
