"""Changes a replica's role in its group: follower, armed successor, or owner.

The replica's thread calls `Roles.step` again and again. Each step compares the directive with the journal.
The step then starts the next change of role that the protocol of `handover.ownership` allows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, time

from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.ownership import CommitPermit, Ownership
from pipeline_runtime.handover.protocol import Refused, Stopped
from pipeline_runtime.model.desired import ClaimOrder, ReplicaError, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.core import has_former_state, is_taken_over, successor
from pipeline_runtime.replica.errors import replaced
from pipeline_runtime.replica.pacing import stay_warm_s
from pipeline_runtime.replica.state import ReplicaState

log = logging.getLogger(__name__)

FINAL_PHASES = ("failed", "fenced", "refused", "retired")
ARM_AGAIN_S = 1.0


@dataclass(frozen=True)
class CatchingUp:
    """One round in which a replica catches up with an owner that keeps committing, before it claims.

    Live migration of virtual machines copies memory in such rounds, too (Clark et al., "Live Migration of
    Virtual Machines", NSDI 2005). Each round processes the batches that the journal held when the round
    began. If more than half as many batches are left after a round, no further round begins: a follower that
    is no faster than the owner would never catch up.
    """

    order: str
    to: Seq  # the last batch of the round
    behind: int  # the number of batches that were left when the round began

    @classmethod
    def begun(cls, order: str, local: Seq, last: Seq) -> CatchingUp:
        return cls(order, last, last - local)

    def over(self, local: Seq) -> bool:
        return local >= self.to

    def gained(self, local: Seq, last: Seq) -> bool:
        return 2 * (last - local) <= self.behind


class Roles:
    def __init__(
        self,
        group: str,
        state: ReplicaState,
        ownership: Ownership,
        catch_up: Callable[[], None],
        changed: Callable[[], None],
        begin_owning: Callable[[], None] = lambda: None,
    ) -> None:
        """`catch_up` reads the journal to its end. Roles calls `changed` after each change of the status, and
        `begin_owning` just before this replica becomes the owner."""
        self._group = group
        self._state = state
        self._ownership = ownership
        self._catch_up = catch_up
        self._changed = changed
        self._begin_owning = begin_owning
        self.role = Role.STOPPED
        self.phase = "stopped"
        self.error: ReplicaError | None = None
        self.order_done: str | None = None  # the id of the newest order that was carried out or refused
        self._orders_seen: set[str] = set()
        self._catching_up: CatchingUp | None = None
        self.owner_since_ms: int | None = None
        self._doubted = False  # the replica was the owner, until Kafka did not answer a commit
        self._warm_at_s = 0.0
        self._release_begun = False  # the owner has announced a batch since `_warm_at_s`
        self._arm_at_s = 0.0

    def set(self, role: Role, phase: str) -> None:
        with self._state.changed:  # so that no status has one new value and one old value
            is_new = (self.role, self.phase) != (role, phase)
            self.role, self.phase = role, phase
        self._changed()
        if is_new:
            log.info("%s: %s, %s", self._group, role.value, phase)

    @property
    def ended(self) -> bool:
        return self.phase in FINAL_PHASES

    def step(self) -> None:
        """Carries out the change that is due now, if any, and sets role and phase. Raises Doubtful. As the
        owner it also raises Fenced."""
        state = self._state
        with state.changed:
            taken = self._taken_over()
            order = state.order if self._may_claim() else None
            if order is not None and order.rewind != state.rewinds_to:
                order = order.model_copy(update={"rewind": None})
            succeed = state.directive.succeed if state.permit is None and not state.draining else None
            may_arm = succeed is not None and state.caught_up and self._query_runs()
            granted = state.view.granted
            released = state.view.released.token if state.view.released is not None else None
            self._release_begun |= state.view.announced is not None
            permit = state.permit
            armed = (
                successor(state.view, state.directive.release, permit.epoch) if permit is not None else None
            )
        if taken is not None:
            self.give_way(taken)
        elif order is not None:
            self._claim(order)
        elif self._ownership.armed_for is not None:
            self._as_successor(succeed, granted, released)
        elif may_arm and succeed is not None:
            self._arm(succeed)
        elif permit is not None:
            if armed is not None:
                self._ownership.prepare_release(armed)
            self._ownership.close_unused(stay_warm_s(release_begun=True))
        elif self.role is Role.OWNER:
            self._released()

    def _query_runs(self) -> bool:
        return self._state.connected.is_set()

    # --- by claim

    def _may_claim(self) -> bool:
        state, order = self._state, self._state.order
        return (
            order is not None
            and order.id not in self._orders_seen
            and state.permit is None
            and not state.draining
            and self._query_runs()  # otherwise the replica would own the group and process nothing
            and (self._is_near(order) if state.rewinds_to is None else state.local == state.rewinds_to)
        )

    def _is_near(self, order: ClaimOrder) -> bool:
        """Returns whether so few batches are left to follow that the replica can follow them after its
        claim."""
        local, last = self._state.local, self._state.view.last_seq
        if self._state.caught_up:
            return True
        if self._state.view.definition not in ("", self._state.wanted_definition):
            return False  # it must first reach the batch after which its CLAIM begins its own definition
        now = self._catching_up
        if now is None or now.order != order.id or (now.over(local) and now.gained(local, last)):
            self._catching_up = CatchingUp.begun(order.id, local, last)
            return False
        return now.over(local)

    def _claim(self, order: ClaimOrder) -> None:
        self.set(Role.STANDBY, "claiming")
        self._state.begin_claim()
        try:
            permit = self._ownership.claim(order)
            if permit is not None:
                self._catch_up()
                self._own(permit, order.id)
                self._doubted = False
                return
        finally:
            self._state.end_claim()
        if isinstance(self._ownership.state, Refused):
            self._refused(order, self._ownership.state.reason)

    def _refused(self, order: ClaimOrder, reason: str) -> None:
        if self._doubted and self._is_still_granted(order):
            # Another replica has initialised its producer meanwhile, for example to arm itself. But the
            # journal has granted no other replica. If this replica gave up, the group would have no owner. If
            # another replica is granted by now, this replica learns it when it next reads the journal.
            log.info("%s: %s; nobody was granted, so it claims again", self._group, reason)
            self.set(Role.STANDBY, "in doubt")
            return
        view = self._state.view
        with self._state.changed:  # so that a status has the refusal together with the new role and phase
            self._done(order.id, reason)
            self.role = Role.STANDBY
            if self._state.directive.retire and view.retired:
                self.phase = "retired"
            elif self._doubted:
                self._fenced(reason)
            elif order.id in view.orders or view.retired:
                self.phase = "refused"  # the replica has owned by this order, so it waits for another order
            else:
                self.phase = "following"  # the order came too late; the next one may be in time
        self._changed()

    def _is_still_granted(self, order: ClaimOrder) -> bool:
        """Returns whether the newest grant in the journal is still this replica's.

        That is the grant over which `order` claims, or the grant of `order` itself. The latter is possible
        because the answer to the CLAIM may have been lost.
        """
        with self._state.changed:
            view = self._state.view
            mine = (order.over, view.orders.get(order.id))
            return view.granted > 0 and view.granted in mine and not view.retired

    def _done(self, order_id: str, refused: str | None) -> None:
        self._orders_seen.add(order_id)
        self.order_done = order_id
        self._state.order_is_done(refused)

    def _own(self, permit: CommitPermit, order_id: str) -> None:
        self._begin_owning()
        with self._state.changed:
            self._state.own(permit)
            self._done(order_id, None)
            self.owner_since_ms = now_ms()
            former = has_former_state(self._state.view, self._state.state_begins.seq, self._state.local)
        if former:
            # The query of the earlier definition still runs. The status must not show it as the new one.
            self.set(Role.STANDBY, "beginning fresh")
        else:
            self.set(Role.OWNER, "owning")

    # --- by release

    def _arm(self, handover: str) -> None:
        if monotonic() < self._arm_at_s:
            return
        self._arm_at_s = monotonic() + ARM_AGAIN_S
        self.set(Role.STANDBY, "arming")
        armed = self._ownership.arm(handover)
        if armed:
            self._stay_warm()
        self._state.set_armed(self._ownership.armed_for is not None)
        self.set(Role.STANDBY, "armed" if self._state.armed else "following")

    def _as_successor(self, succeed: str | None, granted: Epoch, released: str | None) -> None:
        handover = self._ownership.armed_for
        assert handover is not None
        permit = self._ownership.see(granted, released)
        if permit is not None:
            reached("released-to")
            self._own(permit, handover)
            return
        if succeed != handover:
            self._ownership.disarm()
        elif monotonic() - self._warm_at_s > stay_warm_s(self._release_begun):
            self._stay_warm()
        if self._ownership.armed_for is None:
            self._state.set_armed(False)
            self.set(Role.STANDBY, "following")

    def _stay_warm(self) -> None:
        self._warm_at_s, self._release_begun = monotonic(), False
        self._ownership.stay_warm()

    def _released(self) -> None:
        """Makes the replica a follower, because it has released the group."""
        self.owner_since_ms = None
        self.set(Role.STANDBY, "following")

    # --- losing

    def _taken_over(self) -> str | None:
        """Returns why this owner no longer owns, as the journal says, or None if it still owns. An idle owner
        can learn this only from the journal."""
        permit, view = self._state.permit, self._state.view
        if permit is None or not is_taken_over(view, permit.epoch) or self._ownership.releasing:
            return None
        return f"the journal grants epoch {view.granted} to {view.holder}"

    def give_way(self, reason: str) -> None:
        self._ownership.lose(reason)
        self.drop_permit()
        assert isinstance(self._ownership.state, Stopped)
        with self._state.changed:
            self._fenced(self._ownership.state.reason)
        self._changed()

    def _fenced(self, reason: str) -> None:
        """Stops the replica, because another replica owns the group now. The caller holds `changed`."""
        self.error = replaced(reason, now_ms())
        self.role, self.phase = Role.STOPPED, "fenced"

    def claim_again(self, reason: str) -> None:
        """Claims the group as after a restart. The protocol allows this while the replica's own epoch is the
        newest one."""
        log.warning("%s: %s; the journal decides", self._group, reason)
        with self._state.changed:
            state = self._state
            epoch = state.permit.epoch if state.permit else Epoch(0)
            order_id = self.order_done or "restart"
            state.claim_by(ClaimOrder(id=order_id, over=epoch))
            self._orders_seen.discard(order_id)
        self._doubted = True
        self.drop_permit()
        self.set(Role.STANDBY, "in doubt")

    def drop_permit(self) -> None:
        with self._state.changed:
            self._state.lose_permit()
            self.owner_since_ms = None
        self._ownership.close()


def now_ms() -> int:
    return int(time() * 1000)
