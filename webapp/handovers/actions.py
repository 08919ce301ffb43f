"""Moving and restoring elements. An action writes the order, and control carries it out."""

from __future__ import annotations

from typing import NoReturn

from django.db import IntegrityError, transaction

from pipeline_runtime.handover.phases import BEFORE_CUT, Phase, Strategy
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.handovers.facts import coming, deployed_group
from webapp.handovers.forecast import begun_json
from webapp.handovers.models import Handover
from webapp.handovers.targets import restoration_target
from webapp.placements.checkpoints import checkpoints_of, missing_inputs
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import (
    GroupFacts,
    default_strategy,
    migrate_refusal,
    next_step,
    restoration_strategy,
    restore_refusal,
)
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.selectors import busy_nodes
from webapp.problems import Conflict, Invalid, Missing

KEEPS_RUNNING = "The element keeps running."
UNCHANGED = "Nothing was changed."
"""For a refused restoration: the element may not run at all."""


def migrate(actor: User, pipeline: str, element: str, target: str, strategy: str | None = None) -> Handover:
    """Orders a live migration of the element's group to `target`."""
    require(actor, Role.OPERATOR, "move elements")
    with transaction.atomic():
        deployment, group = deployed_group(pipeline, element, "move")
        _check_target(group, target, KEEPS_RUNNING)
        refusal = migrate_refusal(group, target, strategy)
        if refusal is not None:
            name = deployment.name_of(element)
            raise Conflict(
                f"{name} cannot move to {target}: {refusal}.",
                safe=KEEPS_RUNNING,
                next=next_step(group, target),
            )
        return order(
            actor,
            deployment,
            group,
            element=element,
            kind=Handover.Kind.MIGRATION,
            strategy=strategy or default_strategy(group),
            target=target,
        )


def restore(
    actor: User,
    pipeline: str,
    element: str,
    target: str | None = None,
    checkpoint: int | None = None,
    rewind: bool = False,
) -> Handover:
    """Starts the element's group elsewhere, whatever its own node does: from its hot standby, or from a
    checkpoint. With `rewind`, the group writes again everything that was committed after that checkpoint."""
    require(actor, Role.OPERATOR, "restore elements")
    if rewind or checkpoint is not None:
        # Before the transaction, since it asks another service, and no lock may wait for that.
        _check_checkpoint(pipeline, element, checkpoint, rewind)
    with transaction.atomic():
        deployment, group = deployed_group(pipeline, element, "be restored")
        chosen = _chosen_target(deployment, group, element, target)
        return order(
            actor,
            deployment,
            group,
            element=element,
            kind=Handover.Kind.RESTORATION,
            strategy="rewind" if rewind else restoration_strategy(group, chosen, checkpoint),
            target=chosen,
            checkpoint=checkpoint,
        )


def _check_checkpoint(pipeline: str, element: str, checkpoint: int | None, rewind: bool) -> None:
    """Refuses a checkpoint from which the element cannot go on. A rewind has to name one."""
    deployment, group = deployed_group(pipeline, element, "be restored")
    name = deployment.name_of(element)
    if checkpoint is None:
        _refuse_checkpoint(element, name, "a rewind has no default", "say to which checkpoint", "missing")
    known = [item["seq"] for item in checkpoints_of(deployment.pk, group.group)]
    if checkpoint not in known:
        there_are = ", ".join(map(str, known)) or "none"
        message = f"there is no checkpoint {checkpoint}; there are {there_are}"
        what = "that checkpoint is not kept, or no longer kept"
        _refuse_checkpoint(element, name, what, message, "unknown")
    if rewind:
        _refuse_before_new_state(deployment, group, element, checkpoint)
    _refuse_without_inputs(deployment, group.group, element, checkpoint)


def _chosen_target(deployment: Deployment, group: GroupFacts, element: str, target: str | None) -> str:
    """Returns the node that the user chose, or else the best one. Refuses a node on which the group cannot
    start."""
    chosen: str | None
    if target is None:
        chosen, refusal = restoration_target(deployment, group, Fleet(coming()))
    else:
        _check_target(group, target, UNCHANGED)
        chosen, refusal = target, restore_refusal(group, target)
    if refusal is not None or chosen is None:
        where = f" on {chosen}" if chosen else ""
        name = deployment.name_of(element)
        raise Conflict(
            f"{name} cannot be restored{where}: {refusal}.", safe=UNCHANGED, next=next_step(group, target)
        )
    return chosen


def _refuse_before_new_state(
    deployment: Deployment, group: GroupFacts, element: str, checkpoint: int
) -> None:
    """Refuses a checkpoint from before the group began with a fresh state: the present definition cannot use
    its state."""
    reported = (group.owner.status.get("fresh_from") or 0) if group.owner is not None else 0
    fresh_from = max(reported, group.fresh_from)
    if checkpoint < fresh_from:
        message = (
            f"its state was begun fresh at {fresh_from}, when a changed version was deployed, and its "
            "present parameters cannot go on from an older one"
        )
        what = "that checkpoint was taken before it was restarted without its state"
        _refuse_checkpoint(element, deployment.name_of(element), what, message, "former-state")


def _refuse_without_inputs(deployment: Deployment, group: str, element: str, checkpoint: int) -> None:
    """Refuses a checkpoint if some of its inputs' rows are deleted. A replica reads the inputs from the
    checkpoint on, and would notice that only when it is too late to go back."""
    missing = missing_inputs(deployment.pk, group, checkpoint)
    if missing:
        first = missing[0]
        message = (
            f"{first.topic} begins at offset {first.first}, but {first.needed} is needed: its retention is"
            " shorter than the age of the checkpoint"
        )
        name = deployment.name_of(element)
        _refuse_checkpoint(element, name, "that checkpoint is too old for its input", message, "too-old")


def _refuse_checkpoint(element: str, name: str, what: str, message: str, code: str) -> NoReturn:
    raise Invalid(
        f"{name} cannot be restored: {what}.",
        safe=UNCHANGED,
        next="Choose a checkpoint of the list; without a rewind, leave it out to take the newest.",
        faults=[{"element": element, "path": "checkpoint", "message": message, "code": code}],
    )


@transaction.atomic
def cancel(actor: User, id: str) -> Handover:
    """Asks control to end a handover that has not passed the cut. A migration's origin goes on as the owner,
    and a restoration's origin stays as it is. If a restoration has already ordered its target to own, it ends
    as soon as the target has failed or is silent: then the target stays the wanted owner. A second call
    changes nothing."""
    require(actor, Role.OPERATOR, "cancel handovers")
    handover = handover_with(id)
    if not _can_end(handover):
        why = "it has ended" if handover.outcome else "ownership is being passed on already"
        raise Conflict(
            f"The handover of {handover.deployment.name_of(handover.element)} cannot be cancelled: {why}.",
            safe="The element is owned by exactly one node.",
            next="Move the element back when it has ended.",
        )
    if not handover.cancel_requested:
        Handover.objects.filter(pk=handover.pk).update(cancel_requested=True)
        handover.cancel_requested = True
        target = f"{handover.deployment.pipeline.name}/{handover.element}"
        audit(actor, "handover.cancel", target, handover=str(handover.pk))
        commands.send(tasks.HANDOVER, str(handover.pk))
        announce()
    return handover


def cancellable(handover: Handover) -> bool:
    return _can_end(handover) and not handover.cancel_requested


def _can_end(handover: Handover) -> bool:
    """Returns whether the handover is before the cut, or is a restoration that waits for its target to
    own."""
    waits = handover.phase == Phase.CLAIM and Strategy(handover.strategy).restores
    return handover.outcome is None and (handover.phase in BEFORE_CUT or waits)


def handover_with(id: str) -> Handover:
    handover = Handover.objects.select_related("deployment__pipeline").filter(pk=id).first()
    if handover is None:
        raise Missing(f"There is no handover {id}.", next="See the list of handovers.")
    return handover


def _check_target(group: GroupFacts, target: str, safe: str) -> None:
    if target not in group.nodes:
        known = ", ".join(sorted(group.nodes)) or "none"
        message = f'there is no node "{target}" (registered: {known})'
        raise Invalid(
            f'There is no node "{target}".',
            safe=safe,
            next="Choose one of the registered nodes.",
            faults=[{"element": None, "path": "target", "message": message, "code": "unknown_node"}],
        )


def order(
    actor: User | None,
    deployment: Deployment,
    group: GroupFacts,
    *,
    element: str,
    kind: str,
    strategy: str,
    target: str,
    checkpoint: int | None = None,
    reason: str = "",
) -> Handover:
    """Stores the order. The caller has checked all reasons to refuse it. `actor` is None for control
    itself."""
    try:
        with transaction.atomic():
            handover = Handover.objects.create(
                deployment=deployment,
                group=group.group,
                element=element,
                kind=kind,
                strategy=strategy,
                origin=group.node or "",
                target=target,
                checkpoint_seq=checkpoint,
                reason=reason,
                begun=begun_json(group, target, busy_nodes()),
                created_by=actor,
            )
    except IntegrityError as error:
        running = Handover.objects.filter(deployment=deployment, group=group.group, outcome__isnull=True)
        if not running.exists():
            raise
        raise Conflict(
            f"{deployment.name_of(element)} is being moved already.",
            safe=UNCHANGED,
            next="Wait until this move has ended, or cancel it.",
        ) from error
    if actor is not None and kind == Handover.Kind.RESTORATION:
        placement = GroupPlacement.objects.get(deployment=deployment, group=group.group)
        placement.vouch()
        placement.save(update_fields=GroupPlacement.VOUCHED)
    name = deployment.pipeline.name
    audit(
        actor,
        "element.migrate" if kind == Handover.Kind.MIGRATION else "element.restore",
        f"{name}/{element}",
        handover=str(handover.pk),
        origin=handover.origin,
        to=target,
        strategy=strategy,
        checkpoint=checkpoint,
        **({"reason": reason} if reason else {}),
    )
    commands.send(tasks.HANDOVER, str(handover.pk))
    announce()
    return handover
