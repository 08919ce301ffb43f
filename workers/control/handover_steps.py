"""What a handover does next: a pure decision from what is persisted and what nodes report.

    live migration, stop-and-copy          restoration
    PENDING -> STOP -> COPY -> CLAIM       PENDING -> COPY -> CLAIM
                                -> FINISH                        -> FINISH

    STOP    the origin ends after its running batch and keeps a checkpoint of exactly that seq
    COPY    the target fetches it (a restoration: the newest replicated one) and starts a copy
    CLAIM   the target is ordered to own; the journal decides, and fences whoever owned before
    FINISH  the origin's copy is removed; the gap is measured

A failure or a cancellation before CLAIM gives the group back to its origin (a restoration: just
drops the new copy). After CLAIM was ordered nobody knows whether it was granted, so nothing is
given back: the target is the owner, now or when it can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq


class Phase(StrEnum):
    PENDING = "PENDING"
    STOP = "STOP"
    COPY = "COPY"
    CLAIM = "CLAIM"
    FINISH = "FINISH"


STOP_MS_MAX = 60_000
STALLED_MS_MAX = 60_000
"""A copy may take long, but not stand still for so long."""
CLAIM_MS_MAX = 90_000
GAP_MS_MAX = 15_000
"""How long FINISH waits for the new owner's first output: a quiet stream has none."""
ORDERS_MAX = 5
NO_EPOCH = Epoch(0)


@dataclass(frozen=True)
class Progress:
    """A handover as it is persisted."""

    restoration: bool
    phase: Phase
    cancel_requested: bool
    phase_since_ms: int
    order_id: str | None = None  # the newest claim order, from CLAIM on
    order_over: Epoch = NO_EPOCH
    orders: int = 0  # given so far


@dataclass(frozen=True)
class Observed:
    """What the nodes report. `target` only when it is of the generation that was ordered."""

    now_ms: int
    origin: ReplicaStatus | None
    origin_up: bool
    target: ReplicaStatus | None
    target_up: bool
    target_moved_at_ms: int = 0  # when the target's report last showed progress
    undeploying: bool = False


@dataclass(frozen=True)
class Enter:
    phase: Phase


@dataclass(frozen=True)
class Wait:
    pass


@dataclass(frozen=True)
class Reorder:
    """The journal has granted a higher epoch than we knew: order again over that."""

    over: Epoch


@dataclass(frozen=True)
class GiveBack:
    message: str
    cancelled: bool = False


@dataclass(frozen=True)
class Fail:
    message: str


@dataclass(frozen=True)
class Done:
    gap_ms: int | None


Step = Enter | Wait | Reorder | GiveBack | Fail | Done


def next_step(progress: Progress, seen: Observed) -> Step:
    before_claim = progress.phase in (Phase.PENDING, Phase.STOP, Phase.COPY)
    if before_claim and progress.cancel_requested:
        return GiveBack("Cancelled.", cancelled=True)
    if before_claim and seen.undeploying:
        return GiveBack("The pipeline is being undeployed.", cancelled=True)
    if before_claim and not seen.target_up:
        return GiveBack("The target node does not answer.")
    match progress.phase:
        case Phase.PENDING:
            return _begin(progress, seen)
        case Phase.STOP:
            return _stop(progress, seen)
        case Phase.COPY:
            return _copy(progress, seen)
        case Phase.CLAIM:
            return _claim(progress, seen)
        case Phase.FINISH:
            return _finish(progress, seen)


def _begin(progress: Progress, seen: Observed) -> Step:
    if progress.restoration:
        return Enter(Phase.COPY)
    if not seen.origin_up:
        return GiveBack("The node that runs it does not answer: restore the element instead.")
    return Enter(Phase.STOP)


def _stop(progress: Progress, seen: Observed) -> Step:
    if is_stopped_at_its_checkpoint(seen.origin):
        return Enter(Phase.COPY)
    if not seen.origin_up:
        return GiveBack("The origin fell silent while it stopped. Restore the element if it stays so.")
    if seen.now_ms - progress.phase_since_ms > STOP_MS_MAX:
        return GiveBack(f"The origin did not stop within {STOP_MS_MAX // 1000} s.")
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
        return GiveBack(f"The target could not start its copy: {target.error.message}")
    if target is not None and target.role is Role.STANDBY and target.seq >= _seq_to_reach(progress, seen):
        return Enter(Phase.CLAIM)
    if seen.now_ms - max(progress.phase_since_ms, seen.target_moved_at_ms) > STALLED_MS_MAX:
        return GiveBack(f"The copy stood still for {STALLED_MS_MAX // 1000} s.")
    return Wait()


def _seq_to_reach(progress: Progress, seen: Observed) -> Seq:
    # A restored copy may claim at once: it reads the journal to its end before it owns.
    if progress.restoration or seen.origin is None or seen.origin.checkpoint_seq is None:
        return Seq(0)
    return seen.origin.checkpoint_seq


def _claim(progress: Progress, seen: Observed) -> Step:
    target = seen.target
    if target is not None and target.order_id == progress.order_id:
        if target.order_refused is not None:
            if target.epoch > progress.order_over and progress.orders < ORDERS_MAX:
                return Reorder(target.epoch)
            return Fail(f"The target was refused: {target.order_refused}")
        if target.role is Role.OWNER:
            return Enter(Phase.FINISH)
    if seen.now_ms - progress.phase_since_ms > CLAIM_MS_MAX:
        why = "it does not answer" if not seen.target_up else "it is not ready"
        if target is not None and target.error is not None:
            why = target.error.message
        return Fail(
            f"The target was ordered to own but does not yet: {why}. It stays the wanted owner; "
            "restore the element elsewhere if it does not come back. Nothing committed is lost."
        )
    return Wait()


def _finish(progress: Progress, seen: Observed) -> Step:
    gap_ms = measured_gap_ms(seen)
    waited_ms = seen.now_ms - progress.phase_since_ms
    quiet = seen.origin is None or seen.origin.last_output_at_ms is None
    if gap_ms is not None or quiet or waited_ms > GAP_MS_MAX:
        return Done(gap_ms)
    return Wait()


def measured_gap_ms(seen: Observed) -> int | None:
    """Last output of the old owner to first output of the new one; None: not both are known."""
    if seen.origin is None or seen.origin.last_output_at_ms is None:
        return None
    if seen.target is None or seen.target.first_output_at_ms is None:
        return None
    return max(0, seen.target.first_output_at_ms - seen.origin.last_output_at_ms)
