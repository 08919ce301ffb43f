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
    """Releases the group. The planner calls it between batches, and BatchCommit calls it at the end of each
    batch."""

    def __init__(self, state: ReplicaState, ownership: Ownership) -> None:
        self._state = state
        self._ownership = ownership
        self.announced = 0  # the number of batches that this release has announced
        self._last: Seq | None = None  # the seq of the batch with which to release
        self.handover: str | None = None  # the newest handover for which the journal has a RELEASE
        self._released_at_s = -GIVE_WAY_S

    def reset(self) -> None:
        """Begins again, because the owner begins a batch and there is no successor to release to."""
        self.announced, self._last = 0, None

    def announce(self, boundary: Boundary, *, last: bool) -> None:
        """Announces a batch before the owner begins it. Raises Fenced or Doubtful."""
        with self._state.changed:
            permit = self._state.permit
        if permit is None:
            return  # the batch will not be granted either
        permit.commit([Announce(permit.epoch, boundary)])
        reached("announced")
        self.announced += 1
        self._last = boundary.seq if last else None

    def end_with(self, seq: Seq) -> None:
        """Notes that the owner releases with the batch `seq`, without announcing it."""
        self.announced, self._last = 0, seq

    @property
    def releases_now(self) -> bool:
        """Returns whether the newest granted batch was announced, or is the batch with which to release."""
        return self.announced > 0 or self._last is not None

    @property
    def gives_way(self) -> bool:
        """Returns whether this replica has just released, and its successor has not committed yet. If both
        run on one machine, planning a batch would take CPU from the successor's first batch. The caller holds
        `changed`."""
        if monotonic() - self._released_at_s > GIVE_WAY_S:
            return False
        takeover = self._state.view.takeover
        return takeover is None or takeover.order != self.handover or takeover.first_commit_at_ms is None

    def with_batch(self, commit: Commit, outputs: list[Outgoing]) -> int | None:
        """Commits the batch together with RELEASE, as CommitPermit.commit does, if it is the batch with which
        to release.

        Otherwise, or if there is no successor, returns None and commits nothing.
        """
        return self._release(commit.seq, [commit], outputs) if commit.seq == self._last else None

    def alone(self, seq: Seq) -> None:
        """Releases without a batch, because no row waits. Raises Fenced or Doubtful."""
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
        # The journal has the RELEASE, so this replica is a follower from now on.
        with state.changed:
            self.handover, self._released_at_s = handover, monotonic()
            self.reset()
            state.released()
        self._ownership.released()
        return requests
