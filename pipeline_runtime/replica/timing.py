"""Decides when an owner's next batch begins. The rules are in `pacing`; this module applies them to the rows
and batches of one group."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from time import monotonic

from pipeline_runtime.journal.records import Ends
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.input_offsets import InputOffsets
from pipeline_runtime.replica.measures import percentile
from pipeline_runtime.replica.pacing import (
    ALONE_S_MAX,
    FETCH_MS,
    IN_TIME,
    URGENT_MS,
    CpuLoad,
    batches_as_one,
    far_interval_ms,
    followed_interval_ms,
    gather_ms,
    interval_ms,
    lockstep_interval_ms,
    may_wait_ms,
    release_quiet_ms,
    took_ms,
    wait_ms_max,
)
from pipeline_runtime.replica.state import ReplicaState

_RUNS_KEPT = 40


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When a batch began, as long as it is not over."""

    granted_at_s: float
    planned_ms: float  # from when it could be told of until its first task has asked for its rows
    let_wait_ms: float  # how long its rows were let wait
    arrived_at_s: float | None  # when its oldest row came, if known

    def wait_ms(self) -> float | None:
        """How long its oldest row has waited by now. Returns None if nobody knows when it came."""
        return None if self.arrived_at_s is None else (monotonic() - self.arrived_at_s) * 1000


class BatchTiming:
    """Knows the times of a group's batches. The planner tells it what becomes of each batch, and asks it when
    the next batch is due. Times in seconds are those of the monotonic clock."""

    def __init__(
        self, spec: GroupSpec, state: ReplicaState, offsets: InputOffsets, cpu: CpuLoad, *, planned: bool
    ) -> None:
        """`planned`: Spark plans each batch, which then costs more (pacing.STAYING_COST_RATIO)."""
        self._spec = spec
        self._state = state
        self._offsets = offsets
        self._cpu = cpu
        self._planned = planned
        self._told_at_s = 0.0
        self._planned_ms = 0.0  # from then until the first task has asked for its rows
        self._granted_at_s = 0.0
        # What the newest batches took beyond the time that their rows were let wait: see took_ms.
        self._runs_ms: deque[float] = deque(maxlen=_RUNS_KEPT)
        self._let_wait_ms = 0.0  # how long the rows of the newest batch were let wait
        self._paced_from_s = 0.0  # the least interval counts from then; 0 if the next batch waits for nothing
        self._was_full = False  # the last batch was full, so more waits behind it
        self._full_in_a_row = 0  # so many of an owner's newest batches each began behind a full one
        self.arrived_at_s: float | None = None  # when the oldest row of the newest batch came, if known

    # --- what becomes of a batch

    def told(self) -> None:
        """The engine, or a task that stays, may begin the next batch."""
        self._told_at_s = monotonic()

    def asked(self) -> None:
        """A task asks for its rows."""
        self._planned_ms = (monotonic() - self._told_at_s) * 1000

    def granted(self, *, own: bool) -> None:
        """Says that a batch was granted. `own`: this replica has decided the batch as the owner. If another
        replica has, an owner after it has nothing to wait for."""
        self._granted_at_s = monotonic()
        self._let_wait_ms = self._may_wait_ms()
        self._paced_from_s = self._granted_at_s if own else 0.0
        self._full_in_a_row = self._full_in_a_row + 1 if own and self._was_full else 0
        if own and self._fetches_once:
            self._offsets.rest_until(self._granted_at_s + ALONE_S_MAX)

    def written(self) -> None:
        """Says that the batch's records are written. While the transaction ends, the records of the next
        batch are fetched."""
        self._offsets.rest_until(0.0)

    def of_batch(self, waited_s: float = 0.0) -> BatchTimes:
        """Returns the times of the batch that was granted last. `waited_s`: how long the batch has waited,
        processed, for the commit of the batch before it. This is no part of the time that a batch takes."""
        return BatchTimes(
            self._granted_at_s + waited_s, self._planned_ms, self._let_wait_ms, self.arrived_at_s
        )

    def batch_ms(self, times: BatchTimes) -> float:
        """Called once, at the end of a batch. Returns how long it took, planning included."""
        run_ms = (monotonic() - times.granted_at_s) * 1000
        self._runs_ms.append(took_ms(run_ms, times.wait_ms(), times.let_wait_ms, self._target_ms))
        return times.planned_ms + run_ms

    def finished(self, *, full: bool) -> None:
        self._was_full = full
        self._offsets.rest_until(0.0)

    def followed(self) -> None:
        """The next batch is one that another owner has decided. When its rows came is not for this node to
        measure."""
        self.arrived_at_s = None
        self._offsets.gather_s = 0.0
        self._offsets.rest_until(0.0)

    def begin_owning(self) -> None:
        """A new owner's first batch waits for nothing."""
        self._paced_from_s = 0.0

    # --- when the next one begins

    def begins_at_s(self, start: Ends, *, ending: bool, far_ms: float | None = None) -> float:
        """Returns when the batch after `start` begins. `ending`: the inputs have ended, and the batch closes
        what is open. `far_ms`: the round trip of a far successor, if the owner releases with this batch."""
        interval_ms = self._interval_ms(start) if far_ms is None else far_interval_ms(self._spec.pace, far_ms)
        return max(self._paced_from_s + interval_ms / 1000, self.due_at_s(start, ending=ending))

    def due_at_s(self, start: Ends, *, ending: bool) -> float:
        """Returns when the batch has to begin so that its oldest row is out in time. 0 means at once."""
        offsets = self._offsets
        waits_for_nothing = self._paced_from_s == 0.0 or self._state.directive.release is not None
        if waits_for_nothing or self._was_full or offsets.full(start):
            offsets.gather_s = 0.0
            return 0.0
        if ending:
            return 0.0
        offsets.gather_s = gather_ms(self._target_ms) / 1000
        oldest_at_s = self.oldest_at_s()
        return 0.0 if oldest_at_s is None else oldest_at_s + self._may_wait_ms() / 1000

    def pauses(self, begins_at_s: float) -> None:
        """No batch runs before then."""
        self._offsets.rest_until(begins_at_s - FETCH_MS / 1000 if self._fetches_once else 0.0)

    @property
    def _fetches_once(self) -> bool:
        """Returns whether rows are fetched once for each batch, and not while it runs: such fetches would
        delay the batch, and the closer batches follow each other, the more CPU they take."""
        if self._planned or self._target_ms > URGENT_MS or self._state.directive.release is not None:
            return False
        permit = self._state.permit
        return permit is not None and not permit.is_far

    def more_waits(self, start: Ends) -> bool:
        """Returns whether so many rows wait after `start` that the next batch need not wait for more."""
        return self._offsets.full(start) or (self._was_full and self._offsets.lag_rows(start) > 0)

    @property
    def batches_as_one(self) -> int:
        """How many full batches an owner's next one may be."""
        return batches_as_one(self._full_in_a_row) if self._was_full else 1

    def oldest_at_s(self) -> float | None:
        """The earliest time at which the oldest waiting row may have come. Returns None if no row waits, or
        if that is not known."""
        offsets = self._offsets
        if offsets.has_sources:
            return self._granted_at_s or None  # nobody knows of a source's rows before a batch reads them
        found = offsets.oldest_at_s
        return None if found is None else found - offsets.gather_s

    def look_s(self) -> float:
        """Returns for how long nobody needs to ask the sources inside the group. They do not tell when they
        have rows."""
        return max(self._spec.pace.interval_ms_min, self._may_wait_ms()) / 1000

    @property
    def since_granted_s(self) -> float:
        """How long ago the last batch began."""
        return monotonic() - self._granted_at_s

    def usual_ms(self) -> float:
        """Returns how long a single batch usually takes, or 0 if that is not known. Batches that are several
        as one do not count."""
        return percentile(list(self._state.measures.usual_ms), 0.5) or 0.0

    def is_quiet(self) -> bool:
        """Returns whether nothing has come for so long that a follower has processed everything. The caller
        holds `changed`."""
        if self._offsets.waiting and not self._state.paused:
            return False
        return (monotonic() - self._granted_at_s) * 1000 > release_quiet_ms(self.usual_ms())

    @property
    def _target_ms(self) -> int:
        return self._state.latency_ms(self._spec)

    def _may_wait_ms(self) -> float:
        waits_ms = may_wait_ms(self._target_ms, percentile(list(self._runs_ms), IN_TIME) or 0.0)
        most_ms = wait_ms_max(self._offsets.has_sources)
        return waits_ms if most_ms is None else min(waits_ms, most_ms)

    def _interval_ms(self, start: Ends) -> float:
        batch_ms = self.usual_ms()
        if self._state.directive.release is not None:
            return lockstep_interval_ms(self._spec.pace, batch_ms)
        waiting = self._offsets.lag_rows(start)
        least_ms = interval_ms(
            self._spec.pace, self._cpu.ratio(), waiting, planned=self._planned, target_ms=self._target_ms
        )
        if not self._state.directive.followed:
            return least_ms
        return max(least_ms, followed_interval_ms(self._spec.pace, batch_ms))
