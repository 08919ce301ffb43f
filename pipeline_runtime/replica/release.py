"""An owner's way out: it announces its last batches, and releases with the very last one.

A successor that is armed runs each announced batch at the same time as the owner, so it has caught up
when the RELEASE comes, and goes on with the next one.
"""

from __future__ import annotations

from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.ownership import Ownership
from pipeline_runtime.journal.records import Announce, Arm, Boundary, Release
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.replica.state import ReplicaState

LOCKSTEP_BATCHES = 3
"""How many batches are announced before the last: a follower is one batch behind, and gains a part of
the pause between two with each that it need not wait for."""


class OwnerRelease:
    """Called between batches by the gate, and at their end by the sink."""

    def __init__(self, state: ReplicaState, ownership: Ownership) -> None:
        self._state = state
        self._ownership = ownership
        self._announced = 0
        self._last: Seq | None = None  # the batch to release with
        self.handover: str | None = None  # the newest for which RELEASE is in the journal

    def due(self) -> Arm | None:
        """The successor to release to, once that is ordered and it is armed. With `changed` held."""
        state = self._state
        armed, permit, handover = state.view.armed, state.permit, state.directive.release
        if permit is None or handover is None or armed is None:
            return None
        return armed if armed.order == handover and armed.epoch == permit.epoch + 1 else None

    def announce(self, boundary: Boundary) -> None:
        """Before a batch of the owner's own begins. Raises Fenced or Doubtful."""
        with self._state.changed:
            permit, armed = self._state.permit, self.due()
        if armed is None or permit is None:
            self._announced, self._last = 0, None
            return
        permit.commit([Announce(permit.epoch, boundary)])
        reached("announced")
        self._announced += 1
        if self._announced > LOCKSTEP_BATCHES:
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
        with self._state.changed:
            armed, permit, handover = self.due(), self._state.permit, self._state.directive.release
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
            self._announced, self._last = 0, None
            self._state.tell()
        self._ownership.released()
