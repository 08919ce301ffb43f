"""An owner's way out: it announces its last batches, and releases with the very last one.

A successor that is armed runs each announced batch at the same time as the owner, so it has caught up
when the RELEASE comes, and goes on with the next one.
"""

from __future__ import annotations

from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.ownership import Ownership
from pipeline_runtime.journal.records import Announce, Boundary, Release
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.replica.core import successor
from pipeline_runtime.replica.state import ReplicaState


class OwnerRelease:
    """Called between batches by the gate, and at their end by the sink."""

    def __init__(self, state: ReplicaState, ownership: Ownership) -> None:
        self._state = state
        self._ownership = ownership
        self.announced = 0  # batches in the release that is on
        self._last: Seq | None = None  # the batch to release with
        self.handover: str | None = None  # the newest for which RELEASE is in the journal

    def reset(self) -> None:
        """A batch of the owner's own begins, and there is nobody to release to."""
        self.announced, self._last = 0, None

    def announce(self, boundary: Boundary, *, last: bool) -> None:
        """Before a batch of the owner's own begins. Raises Fenced or Doubtful."""
        with self._state.changed:
            permit = self._state.permit
        if permit is None:
            return  # it is not granted, either
        permit.commit([Announce(permit.epoch, boundary)])
        reached("announced")
        self.announced += 1
        if last:
            self._last = boundary.seq

    def with_batch(self, seq: Seq) -> Release | None:
        """The RELEASE to commit together with the batch `seq`, if it is the last."""
        return self._release(seq) if seq == self._last else None

    def alone(self, seq: Seq) -> None:
        """Release without a batch: nothing waits. Raises Fenced or Doubtful."""
        with self._state.changed:
            permit = self._state.permit
        release = self._release(seq)
        if release is not None and permit is not None:
            permit.commit([release])
            self.done(release)

    def _release(self, seq: Seq) -> Release | None:
        state = self._state
        with state.changed:
            permit, handover = state.permit, state.directive.release
            armed = successor(state.view, handover, permit.epoch if permit is not None else None)
        if armed is None or permit is None or handover is None:
            return None
        token = self._ownership.release(handover, armed)
        if token is None:
            return None
        reached("releasing")
        return Release(permit.epoch, seq, token, handover, armed.node)

    def done(self, release: Release) -> None:
        """It is in the journal: from here on this replica is a follower."""
        reached("released")
        with self._state.changed:
            self.handover = release.order
            self._state.permit = None
            self.reset()
            self._state.tell()
        self._ownership.released()
