"""Decides the next step of a handover, from the stored state and the nodes' reports. Pure.

Which phase may follow which (made by `make reference`):

    standby        PENDING -> PREPARE -> WARM -> CUT -> FINISH -> done
                   CUT -> CLAIM
                   CLAIM -> FINISH, CLAIM
    stop-and-copy  PENDING -> STOP -> COPY -> CLAIM -> FINISH -> done
                   CLAIM -> CLAIM
    hot-standby    PENDING -> CLAIM -> FINISH -> done
                   CLAIM -> CLAIM
    checkpoint     PENDING -> COPY -> CLAIM -> FINISH -> done
                   CLAIM -> CLAIM
    rewind         PENDING -> COPY -> CLAIM -> FINISH -> done
                   CLAIM -> CLAIM

The phases:

    PREPARE the target fetches the newest checkpoint and starts a copy that follows the journal
    WARM    the target catches up, and arms itself as the successor
    CUT     the owner is ordered to release to the target, and does so without anybody else
    STOP    the origin ends after its running batch and keeps a checkpoint of exactly that seq
    COPY    the target fetches that checkpoint (in a restoration: the newest replicated one) and starts a copy
    CLAIM   the target is ordered to own; the journal decides, and fences whoever owned before
    FINISH  what nobody needs any more is tidied; the gap is measured

If a handover fails or is cancelled before CUT or CLAIM, the group stays with its origin, and a restoration
only drops the new copy. Once CUT or CLAIM was ordered, nobody knows whether it was done. So nothing is given
back: the target owns, now or when it can. There is one exception: if the target falls silent in CUT, the
origin, which still has all of the state, claims again. It does so at once if it says that it has released,
else after a while. A restoration that is cancelled in CLAIM ends as soon as its target has failed or is
silent: it need not wait for longer, and can be ordered for another node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline_runtime.handover.phases import BEFORE_CUT, Phase, Strategy
from pipeline_runtime.model.desired import ReplicaStatus, Role, Takeover
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.names import sentence

FRESH_MS = 5_000
"""If the newest checkpoint is older, a live migration first asks for a new one: then there is less to
follow."""
FRESH_WAIT_MS = 2_000
"""How long the new checkpoint is waited for. After that, the older one is used."""
STOP_MS_MAX = 60_000
"""How long an origin may take to end after its running batch."""
STALLED_MS_MAX = 120_000
"""A copy may take long, but must not stand still for longer. A busy node needs a minute to start a query."""
CAUGHT_UP_BEHIND = 20
"""A standby that is at most so many batches behind is expected to arm itself."""
CUT_MS_MAX = 60_000
"""How long the cut may take. After that, the target is ordered to claim."""
RELEASED_MS_MAX = 10_000
"""How long a target may take to say that it owns what was released to it. After a restart it cannot own by
that release any more."""
CLAIM_MS_MAX = 90_000
"""How long a claimant may stand still. It starts its query and follows all that came since its checkpoint."""
GAP_MS_MAX = 15_000
"""How long FINISH waits for the new owner's first commit while rows wait for it."""
COMMIT_MS_MAX = 3_000
"""How long it waits if none do. A quiet stream brings nothing to commit."""
ORDERS_MAX = 5
"""How often a claimant that is refused is ordered again."""
ORIGIN_IS_BACK = "The origin answers again and still owns the element, so nothing is restored."
ORIGIN_IS_SILENT = (
    "The origin fell silent before it had handed over. If it stays silent, restore the element."
)
NO_EPOCH = Epoch(0)


@dataclass(frozen=True)
class Progress:
    """A handover as it is stored."""

    id: str
    strategy: Strategy
    phase: Phase
    cancel_requested: bool
    phase_since_ms: int
    copy_ordered: bool = False  # a copy on the target is already wanted
    fallback_left: bool = False  # the copy comes from the origin, but could come from the central store
    order_id: str | None = None  # the newest claim order, from CLAIM on
    order_over: Epoch = NO_EPOCH
    orders: int = 0  # to claim, given so far
    back: bool = False  # the origin has that order
    automatic: bool = False  # control ordered it, because the origin had fallen silent


@dataclass(frozen=True)
class Observed:
    """What the nodes report. `target` is None unless it is of the ordered generation."""

    now_ms: int
    origin: ReplicaStatus | None
    origin_up: bool
    target: ReplicaStatus | None
    target_up: bool
    target_moved_at_ms: int = 0  # when the target's report last showed progress
    released_for_ms: int = 0  # since the origin was first seen to have released
    others_stopped: bool = True  # no other copy runs on a node that answers
    undeploying: bool = False


@dataclass(frozen=True)
class Enter:
    phase: Phase
    note: str = ""


@dataclass(frozen=True)
class Wait:
    pass


@dataclass(frozen=True)
class OrderCopy:
    """The target is to fetch a checkpoint and follow."""


@dataclass(frozen=True)
class CopyFromCentral:
    """The origin does not give its checkpoint: the central store has one."""

    why: str


@dataclass(frozen=True)
class Reorder:
    """The order was refused for now: it is given again, over the newest epoch that is known."""

    over: Epoch


@dataclass(frozen=True)
class ClaimBack:
    """The origin is to claim what it has released."""

    note: str


@dataclass(frozen=True)
class GiveBack:
    message: str
    cancelled: bool = False
    code: str = field(default="", compare=False)  # the page about it: one of error_codes.IN_ORDERS


@dataclass(frozen=True)
class Fail:
    message: str
    code: str = field(default="", compare=False)  # the page about it: one of error_codes.IN_ORDERS


@dataclass(frozen=True)
class Done:
    measured: Takeover | None  # what could be measured in time


Step = Enter | Wait | OrderCopy | CopyFromCentral | Reorder | ClaimBack | GiveBack | Fail | Done


def next_step(progress: Progress, seen: Observed) -> Step:
    if progress.phase in BEFORE_CUT:
        if progress.cancel_requested:
            return GiveBack("Cancelled.", cancelled=True)
        if seen.undeploying:
            return GiveBack("The pipeline is being undeployed.", cancelled=True)
        if not seen.target_up:
            return GiveBack("The target node does not answer.", code="target-silent")
        owns = seen.origin_up and seen.origin is not None and seen.origin.role is Role.OWNER
        if progress.automatic and progress.strategy.restores and owns:
            return GiveBack(ORIGIN_IS_BACK, cancelled=True)
    match progress.phase:
        case Phase.PENDING:
            return _begin(progress, seen)
        case Phase.PREPARE:
            return _prepare(progress, seen)
        case Phase.WARM:
            return _warm(progress, seen)
        case Phase.CUT:
            return _cut(progress, seen)
        case Phase.STOP:
            return _stop(progress, seen)
        case Phase.COPY:
            return _copy(progress, seen)
        case Phase.CLAIM:
            return _claim_back(progress, seen) if progress.back else _claim(progress, seen)
        case Phase.FINISH:
            return _finish(progress, seen)


def _begin(progress: Progress, seen: Observed) -> Step:
    if progress.strategy is Strategy.HOT_STANDBY:
        if seen.target is None or seen.target.role is not Role.STANDBY or seen.target.error is not None:
            return GiveBack(
                "The hot standby is gone. Restore the element from a checkpoint instead.", code="standby-gone"
            )
        return Enter(Phase.CLAIM)
    if progress.strategy.restores:
        return Enter(Phase.COPY)
    if not seen.origin_up:
        return GiveBack(
            "The node that runs it does not answer. Restore the element instead.", code="origin-silent"
        )
    return Enter(Phase.PREPARE if progress.strategy is Strategy.STANDBY else Phase.STOP)


# --- live migration to a standby


def wants_fresh_checkpoint(origin: ReplicaStatus | None, now_ms: int) -> bool:
    return origin is None or origin.checkpoint_at_ms is None or now_ms - origin.checkpoint_at_ms > FRESH_MS


def _prepare(progress: Progress, seen: Observed) -> Step:
    target = seen.target
    if not seen.origin_up:
        return GiveBack(ORIGIN_IS_SILENT, code="origin-silent")
    if not progress.copy_ordered:
        fresh = not wants_fresh_checkpoint(seen.origin, progress.phase_since_ms)
        waited_ms = seen.now_ms - progress.phase_since_ms
        return OrderCopy() if fresh or waited_ms > FRESH_WAIT_MS else Wait()
    if target is not None and target.error is not None:
        if progress.fallback_left:
            return CopyFromCentral(target.error.message)
        return GiveBack(
            f"The target could not start its copy: {sentence(target.error.message)}", code="copy-failed"
        )
    if target is not None and target.role is Role.STANDBY:
        return Enter(Phase.WARM)
    return _wait_unless_stalled(progress, seen)


def _warm(progress: Progress, seen: Observed) -> Step:
    origin, target = seen.origin, seen.target
    if not seen.origin_up:
        return GiveBack(ORIGIN_IS_SILENT, code="origin-silent")
    if target is not None and target.error is not None:
        return GiveBack(f"The target's copy failed: {sentence(target.error.message)}", code="copy-failed")
    if target is not None and target.armed == progress.id:
        if origin is not None and origin.role is Role.OWNER:
            return Enter(Phase.CUT)
        if origin is not None and origin.error is not None and origin.role is Role.STOPPED:
            return GiveBack(
                f"The origin failed before it had handed over: {sentence(origin.error.message)}",
                code="origin-failed",
            )
    waited_ms = seen.now_ms - progress.phase_since_ms
    if target is not None and target.behind <= CAUGHT_UP_BEHIND and waited_ms > STALLED_MS_MAX:
        return GiveBack(
            f"The target did not make itself ready within {STALLED_MS_MAX // 1000} s.", code="copy-stalled"
        )
    return _wait_unless_stalled(progress, seen)


def _wait_unless_stalled(progress: Progress, seen: Observed) -> Step:
    if _still_for_ms(progress, seen) > STALLED_MS_MAX:
        return GiveBack(f"The copy stood still for {STALLED_MS_MAX // 1000} s.", code="copy-stalled")
    return Wait()


def _still_for_ms(progress: Progress, seen: Observed) -> int:
    """Returns for how long nothing has moved on the target in this phase, in ms."""
    return seen.now_ms - max(progress.phase_since_ms, seen.target_moved_at_ms)


def _cut(progress: Progress, seen: Observed) -> Step:
    origin, target = seen.origin, seen.target
    waited_ms = seen.now_ms - progress.phase_since_ms
    if _owns(progress, target):
        return Enter(Phase.FINISH)
    if not seen.target_up:
        if has_released(progress, origin) and seen.origin_up:
            return ClaimBack("the target fell silent after the release: the origin takes the element back")
        if waited_ms > CUT_MS_MAX:
            # Nobody can say who owns. The target stays the wanted owner, and the detector restores from it.
            return _back_or_claim(seen, "the target fell silent while it took over")
        return Wait()
    if not seen.origin_up:
        return Enter(
            Phase.CLAIM, "the origin fell silent while it handed over: the target is ordered to take over"
        )
    if has_released(progress, origin) and seen.released_for_ms > RELEASED_MS_MAX:
        return Enter(Phase.CLAIM, "the target did not take over by the release: it is ordered to take over")
    if waited_ms > CUT_MS_MAX:
        return Enter(
            Phase.CLAIM,
            f"nothing was handed over within {CUT_MS_MAX // 1000} s: the target is ordered to take over",
        )
    return Wait()


def _back_or_claim(seen: Observed, why: str) -> Step:
    if seen.origin_up:
        return ClaimBack(f"{why}: the origin takes the element back")
    return Enter(Phase.CLAIM, f"{why}, and so did the origin: the target takes over when it is back")


def has_released(progress: Progress, origin: ReplicaStatus | None) -> bool:
    return origin is not None and origin.released == progress.id and origin.role is not Role.OWNER


def _owns(progress: Progress, target: ReplicaStatus | None) -> bool:
    """Returns whether the target owns by this handover's release, or by its newest order to claim."""
    by = (progress.id, progress.order_id)
    return target is not None and target.role is Role.OWNER and target.order_id in by


# --- stop-and-copy, restoration from a checkpoint


def _stop(progress: Progress, seen: Observed) -> Step:
    if is_stopped_at_its_checkpoint(seen.origin):
        return Enter(Phase.COPY)
    if not seen.origin_up:
        return GiveBack(
            "The origin fell silent while it stopped. If it stays silent, restore the element.",
            code="origin-silent",
        )
    if seen.now_ms - progress.phase_since_ms > STOP_MS_MAX:
        return GiveBack(f"The origin did not stop within {STOP_MS_MAX // 1000} s.", code="stop-overdue")
    return Wait()


def is_stopped_at_its_checkpoint(origin: ReplicaStatus | None) -> bool:
    return (
        origin is not None
        and origin.role is Role.STOPPED
        and origin.phase == "stopped"
        and origin.checkpoint_seq is not None
        and origin.checkpoint_seq == origin.seq
    )


def _copy(progress: Progress, seen: Observed) -> Step:
    target = seen.target
    if target is not None and target.error is not None:
        return GiveBack(
            f"The target could not start its copy: {sentence(target.error.message)}", code="copy-failed"
        )
    if target is not None and _is_copied(progress, seen, target):
        return Enter(Phase.CLAIM)
    return _wait_unless_stalled(progress, seen)


def _is_copied(progress: Progress, seen: Observed, target: ReplicaStatus) -> bool:
    if progress.strategy is Strategy.REWIND:
        # It must not follow the journal past the checkpoint, so it is fetched but not started.
        fetched = target.role is Role.STOPPED and target.phase in ("fetched", "stopped")
        return fetched and seen.others_stopped
    return target.role is Role.STANDBY and target.seq >= _seq_to_reach(progress, seen)


def _seq_to_reach(progress: Progress, seen: Observed) -> Seq:
    # A restored copy may claim at once, because it reads the journal to its end before it owns.
    if progress.strategy.restores or seen.origin is None or seen.origin.checkpoint_seq is None:
        return Seq(0)
    return seen.origin.checkpoint_seq


# --- claim, finish


def _claim(progress: Progress, seen: Observed) -> Step:
    target = seen.target
    if _owns(progress, target):
        return Enter(Phase.FINISH)
    again = _refused(progress, seen, target, "The target")
    if again is not None:
        return again
    works = seen.target_up and target is not None and target.error is None
    waited_ms = _still_for_ms(progress, seen) if works else seen.now_ms - progress.phase_since_ms
    # Only the wait ends: whether the order was carried out, nobody knows, as after the longest wait.
    cancelled = progress.cancel_requested and progress.strategy.restores and not works
    if cancelled or waited_ms > CLAIM_MS_MAX:
        return Fail(
            f"{'Cancelled. ' if cancelled else ''}The target was ordered to own but does not yet: "
            f"{_why_not(target, seen.target_up)}. It stays the wanted owner. If it does not come back, "
            "restore the element elsewhere. Nothing committed is lost.",
            code="not-owned-yet",
        )
    return Wait()


def _claim_back(progress: Progress, seen: Observed) -> Step:
    origin = seen.origin
    if origin is not None and origin.role is Role.OWNER:
        if origin.order_id == progress.order_id:
            return Fail(
                "The target fell silent after the element was handed to it, so the origin has taken it back "
                "and goes on with all of its state. Nothing is lost, and nothing was written twice. Move it "
                "again when the target is well.",
                code="target-silent",
            )
        waited_ms = seen.now_ms - progress.phase_since_ms
        if origin.released != progress.id and waited_ms > RELEASED_MS_MAX:
            return Fail(
                "The target fell silent before the element was handed to it. It runs on the origin as "
                "before. Nothing is lost. Move it again when the target is well.",
                code="target-silent",
            )
    again = _refused(progress, seen, origin, "The origin")
    if again is not None:
        return again
    if seen.now_ms - progress.phase_since_ms > CLAIM_MS_MAX:
        return Fail(
            "The target fell silent while it took over, and the origin was told to take it back but does not "
            f"own yet: {_why_not(origin, seen.origin_up)}. It stays the wanted owner. If it does not come "
            "back, restore the element elsewhere. Nothing committed is lost.",
            code="not-owned-yet",
        )
    return Wait()


def _refused(progress: Progress, seen: Observed, claimant: ReplicaStatus | None, who: str) -> Step | None:
    if claimant is None or claimant.order_id != progress.order_id or claimant.order_refused is None:
        return None
    shows_newer = claimant.epoch > progress.order_over
    # A claimant that lost to another one at the same moment may not have read the other's epoch yet.
    in_time = seen.now_ms - progress.phase_since_ms <= CLAIM_MS_MAX
    if not claimant.retired and progress.orders < ORDERS_MAX and (shows_newer or in_time):
        return Reorder(max(claimant.epoch, progress.order_over))
    return Fail(f"{who} was refused: {claimant.order_refused}", code="ownership-refused")


def _why_not(claimant: ReplicaStatus | None, up: bool) -> str:
    if claimant is not None and claimant.error is not None:
        return claimant.error.message
    return "it is not ready" if up else "it does not answer"


def _finish(progress: Progress, seen: Observed) -> Step:
    takeover = takeover_of(progress, seen)
    waited_ms = seen.now_ms - progress.phase_since_ms
    if takeover is None:
        return Done(None) if waited_ms > GAP_MS_MAX else Wait()
    rows_wait = seen.target is not None and (seen.target.lag_rows or 0) > 0
    limit_ms = GAP_MS_MAX if rows_wait else COMMIT_MS_MAX
    return Done(takeover) if takeover.first_commit_at_ms is not None or waited_ms > limit_ms else Wait()


def takeover_of(progress: Progress, seen: Observed) -> Takeover | None:
    """Returns what the new owner's journal says about this change of owner, by the broker's clock."""
    takeover = seen.target.takeover if seen.target is not None else None
    if takeover is None or takeover.order not in (progress.id, progress.order_id):
        return None
    return takeover
