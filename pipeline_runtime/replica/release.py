"""Releases a group: the owner announces its last batches, and releases with the very last one.

An armed successor runs each announced batch at the same time as the owner. So it has caught up when the
RELEASE comes, and goes on with the next batch. To a far successor (core.is_far) no batch is announced.
Instead the owner pauses for a round trip, so that the successor's question waits at the broker when the
RELEASE comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic

from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.ownership import Ownership
from pipeline_runtime.journal.records import Announce, Boundary, Commit, Record
from pipeline_runtime.kafka.transactions import Outgoing
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.replica.core import successor
from pipeline_runtime.replica.state import ReplicaState

GIVE_WAY_S = 1.0


class OwnerRelease:
    """The planner calls it between batches, and the commit at the end of each."""

    def __init__(self, state: ReplicaState, ownership: Ownership) -> None:
        self._state = state
        self._ownership = ownership
        self.announced = 0  # how many batches, in the release under way
        self._last: Seq | None = None  # the batch to release with
        self.handover: str | None = None  # the newest one for which the journal has a RELEASE
        self._released_at_s = -GIVE_WAY_S

    def reset(self) -> None:
        """The owner begins a batch, and there is nobody to release to."""
        self.announced, self._last = 0, None

    def announce(self, boundary: Boundary, *, last: bool) -> None:
        """Called before the owner begins the batch. Raises Fenced or Doubtful."""
        with self._state.changed:
            permit = self._state.permit
        if permit is None:
            return  # the batch will not be granted, either
        permit.commit([Announce(permit.epoch, boundary)])
        reached("announced")
        self.announced += 1
        self._last = boundary.seq if last else None

    def end_with(self, seq: Seq) -> None:
        """The owner begins a batch that it has not announced, and is going to release with it."""
        self.announced, self._last = 0, seq

    @property
    def releases_now(self) -> bool:
        """Whether the batch that was granted last was announced, or is the one to release with."""
        return self.announced > 0 or self._last is not None

    @property
    def gives_way(self) -> bool:
        """Whether this replica has just released, and its successor has not committed yet. If both run on one
        machine, planning a batch would take CPU from the successor's first one. The caller holds
        `changed`."""
        if monotonic() - self._released_at_s > GIVE_WAY_S:
            return False
        takeover = self._state.view.takeover
        return takeover is None or takeover.order != self.handover or takeover.first_commit_at_ms is None

    def with_batch(self, commit: Commit, outputs: list[Outgoing]) -> int | None:
        """Commit the batch together with RELEASE, as CommitPermit.commit does, if it is the one to release
        with.

        Returns None, and commits nothing, if it is not, or if there is nobody to release to.
        """
        return self._release(commit.seq, [commit], outputs) if commit.seq == self._last else None

    def alone(self, seq: Seq) -> None:
        """Release without a batch, because no row waits. Raises Fenced or Doubtful."""
        self._release(seq)

    def _release(self, seq: Seq, last: Sequence[Record] = (), outputs: Iterable[Outgoing] = ()) -> int | None:
        state = self._state
        with state.changed:
            permit, handover = state.permit, state.directive.release
            armed = successor(state.view, handover, permit.epoch if permit is not None else None)
        if armed is None or handover is None:
            return None
        requests = self._ownership.release(handover, armed, seq, last, outputs)
        if requests is None:
            return None
        # The journal has the RELEASE: from here on this replica is a follower.
        with state.changed:
            self.handover, self._released_at_s = handover, monotonic()
            self.reset()
            state.released()
        self._ownership.released()
        return requests
