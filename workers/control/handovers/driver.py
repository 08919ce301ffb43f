"""Drives one handover: decides by `handovers/steps.py`, and stores each phase together with its effect.

Every effect is a change of desired state, in the same transaction as the phase to which it belongs. So when a
control process dies anywhere, the next one looks and goes on.
"""

from __future__ import annotations

import logging
from time import monotonic

from django.db import close_old_connections, transaction

from pipeline_runtime.handover.phases import Phase, Strategy
from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch
from webapp.audit.announcements import announce
from webapp.handovers.following import draft_follows
from webapp.handovers.models import Handover
from webapp.moments import ms_of_moment
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement, Replica
from workers import messages
from workers.control.context import ControlContext, now_ms
from workers.control.handovers.effects import Effects, end, enter, note_progress
from workers.control.handovers.steps import (
    ClaimBack,
    CopyFromCentral,
    Done,
    Enter,
    Fail,
    GiveBack,
    Observed,
    OrderCopy,
    Progress,
    Reorder,
    Step,
    Wait,
    next_step,
)
from workers.control.replica_rows import reported

log = logging.getLogger(__name__)

SHOW_EVERY_S = 0.5
MEASURED = {
    "at_ms",
    "last_commit_at_ms",
    "first_commit_at_ms",
    "first_wait_ms",
    "usual_wait_ms",
}
"""The fields of a Takeover that are stored, for `webapp.handovers.pause`."""


def drive_handover(id: str, context: ControlContext) -> None:
    """Drives the handover until it has an outcome, or the process ends."""
    driver = _Driver(id, context)
    while not context.closing.is_set():
        seen = context.reports.count
        close_old_connections()
        if driver.advance():
            return
        context.reports.wait(seen, 1.0)


class _Driver:
    def __init__(self, id: str, context: ControlContext) -> None:
        self._id = id
        self._context = context
        self._target_seen: tuple[object, ...] = ()
        self._target_moved_at_ms = 0
        self._shown_at_s = 0.0
        self._released_at_ms: int | None = None  # when the release was first seen

    def advance(self) -> bool:
        """Takes one step. Returns whether the handover has ended."""
        with transaction.atomic():
            handover = (
                Handover.objects.select_for_update(of=("self",))
                .select_related("deployment__pipeline")
                .get(pk=self._id)
            )
            if handover.outcome is not None:
                return True
            placement = (
                GroupPlacement.objects.select_related("node")
                .filter(deployment=handover.deployment_id, group=handover.group)
                .first()
            )
            extra = (
                ExtraReplica.objects.filter(deployment=handover.deployment_id, group=handover.group)
                .filter(node__name=handover.target)
                .first()
            )
            if placement is None or _is_let_go(handover, extra):
                end(
                    handover,
                    Handover.Outcome.FAILED,
                    "The pipeline was undeployed: there is nothing to move.",
                )
                announce()
                return True
            seen = self._observe(handover, placement, extra)
            copies = extra is not None and extra.handover == str(handover.pk)
            moved = note_progress(handover, seen.target, copies)
            since_ms = self._context.heard_since(_phase_since_ms(handover))
            step = next_step(_progress(handover, placement, extra, seen, since_ms), seen)
            if isinstance(step, Wait):
                self._show(handover, moved)
                return False
            log.info("handover of %s.%s: %s", handover.deployment_id, handover.group, step)
            _apply(step, handover, Effects(handover, placement, self._context))
            handover.save()
            announce()
        self._context.desired.notify()
        return handover.outcome is not None

    def _show(self, handover: Handover, moved: bool) -> None:
        """Shows the progress inside a phase, now and then. Nothing depends on it."""
        if moved and monotonic() - self._shown_at_s > SHOW_EVERY_S:
            self._shown_at_s = monotonic()
            handover.save(update_fields=["timeline", "bytes_copied"])
            announce()

    def _observe(self, handover: Handover, placement: GroupPlacement, extra: ExtraReplica | None) -> Observed:
        rows = {
            row.node.name: row
            for row in Replica.objects.select_related("node").filter(
                deployment=handover.deployment_id, group=handover.group
            )
        }
        up = dict(Node.objects.values_list("name", "up"))
        target = rows.get(handover.target)
        wanted = extra.generation if extra is not None else -1
        if placement.node.name == handover.target:
            wanted = placement.generation
        status = reported(target) if target is not None and target.generation == wanted else None
        if status is not None:
            shown = (status.phase, status.role, status.seq, status.bytes_fetched)
            if shown != self._target_seen:
                self._target_seen, self._target_moved_at_ms = shown, now_ms()
        origin = reported(rows.get(handover.origin))
        if origin is not None and origin.released == str(handover.pk):
            self._released_at_ms = self._released_at_ms or now_ms()
        released_at_ms = self._released_at_ms
        others = [row for name, row in rows.items() if name != handover.target and up.get(name, False)]
        return Observed(
            now_ms=now_ms(),
            origin=origin,
            origin_up=up.get(handover.origin, False),
            target=status,
            target_up=up.get(handover.target, False),
            target_moved_at_ms=self._target_moved_at_ms,
            released_for_ms=now_ms() - self._context.heard_since(released_at_ms) if released_at_ms else 0,
            others_stopped=all(row.role == Role.STOPPED.value for row in others),
            undeploying=handover.deployment.status == Deployment.Status.UNDEPLOYING,
        )


def _is_let_go(handover: Handover, extra: ExtraReplica | None) -> bool:
    """Returns whether an undeployment has taken away the deployment, or the copy that should own."""
    status = handover.deployment.status
    if status not in Deployment.ACTIVE:
        return True
    undeploying = status == Deployment.Status.UNDEPLOYING
    return undeploying and extra is None and Phase(handover.phase) is Phase.CUT


def _phase_since_ms(handover: Handover) -> int:
    return handover.timeline[-1]["start_ms"] if handover.timeline else ms_of_moment(handover.created_at)


def _progress(
    handover: Handover,
    placement: GroupPlacement,
    extra: ExtraReplica | None,
    seen: Observed,
    phase_since_ms: int,
) -> Progress:
    claims = [entry for entry in handover.timeline if entry["phase"] == Phase.CLAIM]
    source = extra.source if extra is not None else None
    return Progress(
        id=str(handover.pk),
        strategy=Strategy(handover.strategy),
        phase=Phase(handover.phase),
        cancel_requested=handover.cancel_requested,
        phase_since_ms=phase_since_ms,
        copy_ordered=extra is not None and (extra.handover == str(handover.pk) or _follows(seen.target)),
        fallback_left=source is not None and source["url"] != messages.CENTRAL,
        order_id=placement.order_id if claims else None,
        order_over=Epoch(placement.order_over),
        orders=len(claims),
        automatic=handover.created_by_id is None and bool(handover.reason),
        back=bool(claims) and placement.node.name == handover.origin != handover.target,
    )


def _follows(target: ReplicaStatus | None) -> bool:
    """Returns whether the target has a hot standby from before the handover. A failed copy does not count."""
    return target is not None and target.role is Role.STANDBY and target.error is None


def _apply(step: Step, handover: Handover, effects: Effects) -> None:
    match step:
        case Enter(phase, note):
            _on_entering(phase, effects)
            enter(handover, phase, note)
        case OrderCopy():
            effects.order_standby()
        case CopyFromCentral(why):
            effects.copy_from_central()
            handover.timeline[-1]["note"] = (
                f"from the central store, because {handover.origin} gave no checkpoint: {why}"
            )
        case Reorder(over):
            effects.order_again(over)
            enter(handover, Phase.CLAIM, "the order was refused: ordered again")
        case ClaimBack(note):
            effects.order_origin_back()
            enter(handover, Phase.CLAIM, note)
        case GiveBack(message, cancelled, code):
            effects.give_back()
            outcome = Handover.Outcome.CANCELLED if cancelled else Handover.Outcome.FAILED
            where = f" It runs on {handover.origin} as before."
            # The origin of a restoration may well be dead, and nothing was done to it.
            restores = Strategy(handover.strategy).restores
            end(handover, outcome, message + ("" if restores else where), code)
        case Fail(message, code):
            end(handover, Handover.Outcome.FAILED, message, code)
        case Done(measured):
            if measured is not None:
                handover.gap_ms, handover.round_trips = measured.gap_ms, measured.round_trips
                handover.measured = measured.model_dump(mode="json", include=MEASURED) | _stopped_at(handover)
            followed = draft_follows(handover) if _is_to_stay(handover) else []
            end(handover, Handover.Outcome.DONE, _done_message(handover, followed))


def _stopped_at(handover: Handover) -> dict[str, int]:
    """Returns when a stop-and-copy told its origin to stop, as a part of `measured`."""
    starts = [entry["start_ms"] for entry in handover.timeline if entry["phase"] == Phase.STOP]
    return {"stopped_at_ms": starts[0]} if starts else {}


def _on_entering(phase: Phase, effects: Effects) -> None:
    match phase:
        case Phase.PREPARE:
            effects.ask_for_checkpoint()
        case Phase.WARM:
            effects.arm_target()
        case Phase.CUT:
            effects.order_release()
        case Phase.STOP:
            effects.placement.role = "stopped"
            effects.placement.save(update_fields=["role"])
        case Phase.COPY:
            effects.order_copy()
        case Phase.CLAIM:
            effects.order_claim()
        case Phase.FINISH:
            effects.finish()


def _is_to_stay(handover: Handover) -> bool:
    """Returns whether somebody moved this very element, so that the draft should follow it.

    After a drain, a restoration or a policy's move, the pin is still where the user wants the element.
    """
    return handover.kind == Handover.Kind.MIGRATION and not handover.reason


def _done_message(handover: Handover, followed: list[str]) -> str:
    message = f"{handover.deployment.name_of(handover.element)} runs on {handover.target}."
    if followed:
        message += f" The draft pinned it to {handover.origin}; it now pins it to {handover.target}."
    if handover.strategy == Strategy.REWIND:
        message += " It writes again what was written after that checkpoint. The newer checkpoints are gone."
    return message
