"""Drives one handover: decides by `handover_steps`, persists each phase together with its effect.

Every effect is a change of desired state in the same transaction as the phase it belongs to. So a
control process that dies anywhere is followed by one that looks and goes on.
"""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime
from typing import Any

from django.db import close_old_connections, transaction
from django.utils import timezone

from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch
from webapp.handovers.models import Handover
from webapp.monitoring.records import announce, record_event
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, ExtraReplica, GroupPlacement, Replica
from workers import messages
from workers.control.context import ControlContext, now_ms
from workers.control.handover_steps import (
    Done,
    Enter,
    Fail,
    GiveBack,
    Observed,
    Phase,
    Progress,
    Reorder,
    Step,
    Wait,
    next_step,
)

log = logging.getLogger(__name__)


def drive_handover(id: str, context: ControlContext) -> None:
    """Until it has an outcome, or the process ends."""
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

    def advance(self) -> bool:
        """Take one step; True: the handover has ended."""
        with transaction.atomic():
            handover = (
                Handover.objects.select_for_update(of=("self",))
                .select_related("deployment__pipeline")
                .get(pk=self._id)
            )
            if handover.outcome is not None:
                return True
            placement = GroupPlacement.objects.filter(
                deployment=handover.deployment_id, group=handover.group
            ).first()
            if placement is None:
                _end(handover, Handover.Outcome.FAILED, "The pipeline was undeployed.")
                return True
            step = next_step(self._progress(handover, placement), self._observe(handover, placement))
            if isinstance(step, Wait):
                return False
            log.info("handover of %s.%s: %s", handover.deployment_id, handover.group, step)
            self._apply(step, handover, placement)
            handover.save()
            announce("handovers", str(handover.pk))
            announce("elements", handover.deployment.pipeline.name)
        self._context.desired.notify()
        return handover.outcome is not None

    # -- observing -------------------------------------------------------------------------------

    def _progress(self, handover: Handover, placement: GroupPlacement) -> Progress:
        phase = Phase(handover.phase)
        since_ms = handover.timeline[-1]["start_ms"] if handover.timeline else _ms(handover.created_at)
        notes = [entry for entry in handover.timeline if entry["phase"] == Phase.CLAIM]
        return Progress(
            restoration=handover.kind == Handover.Kind.RESTORATION,
            phase=phase,
            cancel_requested=handover.cancel_requested,
            phase_since_ms=since_ms,
            order_id=placement.order_id if notes else None,
            order_over=Epoch(placement.order_over),
            orders=len(notes),
        )

    def _observe(self, handover: Handover, placement: GroupPlacement) -> Observed:
        rows = {
            row.node.name: row
            for row in Replica.objects.select_related("node").filter(
                deployment=handover.deployment_id, group=handover.group
            )
        }
        up = dict(Node.objects.values_list("name", "up"))
        origin, target = rows.get(handover.origin), rows.get(handover.target)
        wanted = _target_generation(handover, placement)
        status = _status(target) if target is not None and target.generation == wanted else None
        if status is not None:
            shown = (status.phase, status.role, status.seq, status.bytes_fetched)
            if shown != self._target_seen:
                self._target_seen, self._target_moved_at_ms = shown, now_ms()
            if status.bytes_fetched > handover.bytes_copied:
                handover.bytes_copied = status.bytes_fetched
        return Observed(
            now_ms=now_ms(),
            origin=_status(origin),
            origin_up=up.get(handover.origin, False),
            target=status,
            target_up=up.get(handover.target, False),
            target_moved_at_ms=self._target_moved_at_ms,
            undeploying=handover.deployment.status == Deployment.Status.UNDEPLOYING,
        )

    # -- effects ---------------------------------------------------------------------------------

    def _apply(self, step: Step, handover: Handover, placement: GroupPlacement) -> None:
        match step:
            case Enter(Phase.STOP):
                placement.role = "stopped"
                placement.save(update_fields=["role"])
                _enter(handover, Phase.STOP)
            case Enter(Phase.COPY):
                self._order_copy(handover, placement)
                _enter(handover, Phase.COPY)
            case Enter(Phase.CLAIM):
                self._order_claim(handover, placement)
                _enter(handover, Phase.CLAIM)
            case Enter(Phase.FINISH):
                ExtraReplica.objects.filter(deployment=handover.deployment_id, group=handover.group).delete()
                # The origin's copy goes: from now on the central store is where to start again from.
                placement.source = None
                placement.save(update_fields=["source"])
                _enter(handover, Phase.FINISH)
            case Reorder(over):
                _new_order(placement, over)
                placement.save(update_fields=["order_id", "order_over"])
                _enter(handover, Phase.CLAIM, f"the journal had granted epoch {over}: ordered again")
            case GiveBack(message, cancelled):
                self._give_back(handover, placement)
                outcome = Handover.Outcome.CANCELLED if cancelled else Handover.Outcome.FAILED
                where = f" It runs on {handover.origin} as before."
                # A restoration's origin may well be dead; nothing was done to it.
                _end(handover, outcome, message + ("" if handover.kind == "restoration" else where))
            case Fail(message):
                _end(handover, Handover.Outcome.FAILED, message)
            case Done(gap_ms):
                handover.gap_ms = gap_ms
                _end(handover, Handover.Outcome.DONE, f"{handover.element} runs on {handover.target}.")

    def _order_copy(self, handover: Handover, placement: GroupPlacement) -> None:
        source: dict[str, Any] | None
        if handover.kind == Handover.Kind.RESTORATION:
            source = {"url": messages.CENTRAL, "seq": handover.checkpoint_seq}
            if handover.checkpoint_seq is None and not self._has_checkpoint(handover):
                source = None  # nothing was ever replicated: it starts empty and reads from the beginning
        else:
            origin = _status(self._row(handover, handover.origin))
            node = Node.objects.get(name=handover.origin)
            seq = origin.checkpoint_seq if origin is not None else None
            source = {"url": node.url, "seq": seq} if seq else None
        ExtraReplica.objects.update_or_create(
            deployment_id=handover.deployment_id,
            group=handover.group,
            node=Node.objects.get(name=handover.target),
            defaults={
                "role": Role.STANDBY.value,
                "source": source,
                "generation": _next_generation(handover, placement),
            },
        )

    def _has_checkpoint(self, handover: Handover) -> bool:
        return bool(self._context.central.manifests(f"{handover.deployment_id}.{handover.group}"))

    def _order_claim(self, handover: Handover, placement: GroupPlacement) -> None:
        """The placement moves to the target. The origin's copy stays, stopped, until FINISH."""
        extra = ExtraReplica.objects.get(
            deployment=handover.deployment_id, group=handover.group, node__name=handover.target
        )
        if handover.kind == Handover.Kind.MIGRATION:
            ExtraReplica.objects.update_or_create(
                deployment_id=handover.deployment_id,
                group=handover.group,
                node=placement.node,
                defaults={
                    "role": Role.STOPPED.value,
                    "source": None,
                    "generation": placement.generation,
                },
            )
        placement.node, placement.role = extra.node, "owner"
        placement.source, placement.generation = extra.source, extra.generation
        _new_order(placement, self._epoch_known(handover))
        # Named fields: a user may pause the group at the same time.
        placement.save(update_fields=["node", "role", "source", "generation", "order_id", "order_over"])
        extra.delete()

    def _give_back(self, handover: Handover, placement: GroupPlacement) -> None:
        ExtraReplica.objects.filter(deployment=handover.deployment_id, group=handover.group).delete()
        if placement.role == "stopped":
            origin = _status(self._row(handover, handover.origin))
            placement.role = "owner"
            _new_order(placement, origin.epoch if origin else self._epoch_known(handover))
            placement.save(update_fields=["role", "order_id", "order_over"])

    def _epoch_known(self, handover: Handover) -> Epoch:
        rows = Replica.objects.filter(deployment=handover.deployment_id, group=handover.group)
        return Epoch(max((row.epoch for row in rows), default=0))

    @staticmethod
    def _row(handover: Handover, node: str) -> Replica | None:
        return Replica.objects.filter(
            deployment=handover.deployment_id, group=handover.group, node__name=node
        ).first()


def _target_generation(handover: Handover, placement: GroupPlacement) -> int:
    if placement.node.name == handover.target:
        return placement.generation
    extra = ExtraReplica.objects.filter(
        deployment=handover.deployment_id, group=handover.group, node__name=handover.target
    ).first()
    return extra.generation if extra is not None else -1


def _next_generation(handover: Handover, placement: GroupPlacement) -> int:
    """Higher than any copy of this group ever had, so that no node takes old state for new."""
    rows = Replica.objects.filter(deployment=handover.deployment_id, group=handover.group)
    extras = ExtraReplica.objects.filter(deployment=handover.deployment_id, group=handover.group)
    generations = [placement.generation, *(row.generation for row in rows), *(e.generation for e in extras)]
    return max(generations) + 1


def _new_order(placement: GroupPlacement, over: Epoch) -> None:
    placement.order_id, placement.order_over = uuid.uuid4().hex, over


def _enter(handover: Handover, phase: Phase, note: str = "") -> None:
    _close_phase(handover)
    handover.phase = phase.value
    handover.timeline.append(
        {"phase": phase.value, "start_ms": now_ms(), "end_ms": None, "bytes": 0, "note": note}
    )


def _close_phase(handover: Handover) -> None:
    if handover.timeline:
        last = handover.timeline[-1]
        last["end_ms"] = now_ms()
        if last["phase"] == Phase.COPY:
            last["bytes"] = handover.bytes_copied


def _end(handover: Handover, outcome: str, message: str) -> None:
    _close_phase(handover)
    handover.outcome, handover.message, handover.ended_at = outcome, message, timezone.now()
    handover.save()
    record_event(
        f"handover.{outcome}",
        f"{handover.get_kind_display()} of {handover.element} from {handover.origin} to "
        f"{handover.target}: {message}",
        severity="warning" if outcome == Handover.Outcome.FAILED else "info",
        pipeline=handover.deployment.pipeline.name,
        element=handover.element,
        node=handover.target,
        handover=str(handover.pk),
        gap_ms=handover.gap_ms,
    )


def _status(row: Replica | None) -> ReplicaStatus | None:
    return ReplicaStatus.model_validate(row.status) if row is not None else None


def _ms(at: datetime) -> int:
    return int(at.astimezone(UTC).timestamp() * 1000)
