"""Moving and restoring elements: writes the order, the control side carries it out."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.config import celery
from webapp.handovers.models import Handover
from webapp.monitoring.records import announce, audit
from webapp.pipelines.actions import deployed_group
from webapp.pipelines.checkpoints import checkpoints_of
from webapp.pipelines.group_state import GroupFacts, default_target, migrate_refusal, restore_refusal
from webapp.pipelines.models import Deployment
from webapp.problems import Conflict, Invalid, Missing

UNTOUCHED = "The element goes on as before."
CANCELLABLE_PHASES = ("PENDING", "STOP", "COPY")


def migrate(actor: User, pipeline: str, element: str, target: str, strategy: str | None = None) -> Handover:
    """Live migration of the element's group to `target`."""
    require(actor, Role.OPERATOR, "move elements")
    strategy = strategy or "stop-and-copy"
    with transaction.atomic():
        deployment, group = deployed_group(pipeline, element, "move")
        _check_target(group, target)
        refusal = migrate_refusal(group, target, strategy)
        if refusal is not None:
            raise Conflict(f'"{element}" cannot move to {target}: {refusal}.', safe=UNTOUCHED)
        handover = _order(actor, deployment, group, element, Handover.Kind.MIGRATION, strategy, target, None)
    return handover


def restore(
    actor: User, pipeline: str, element: str, target: str | None = None, checkpoint: int | None = None
) -> Handover:
    """Start the element's group elsewhere from a checkpoint, whatever its own node does."""
    require(actor, Role.OPERATOR, "restore elements")
    if checkpoint is not None:
        # Before the transaction: it asks another service, and nobody shall wait for that with a lock.
        deployment, group = deployed_group(pipeline, element, "be restored")
        known = [item["seq"] for item in checkpoints_of(deployment.pk, group.group)]
        if checkpoint not in known:
            message = f"there is no checkpoint {checkpoint}; there are {', '.join(map(str, known)) or 'none'}"
            raise Invalid(
                f'"{element}" has no checkpoint {checkpoint}.',
                safe=UNTOUCHED,
                next="Choose one of the list, or leave it out to take the newest.",
                faults=[{"element": element, "path": "checkpoint", "message": message, "code": "unknown"}],
            )
    with transaction.atomic():
        deployment, group = deployed_group(pipeline, element, "be restored")
        if target is not None:
            _check_target(group, target)
        chosen = target or default_target(group)
        refusal = restore_refusal(group, chosen)
        if refusal is not None or chosen is None:
            where = f" on {chosen}" if chosen else ""
            raise Conflict(f'"{element}" cannot be restored{where}: {refusal}.', safe=UNTOUCHED)
        return _order(
            actor, deployment, group, element, Handover.Kind.RESTORATION, "checkpoint", chosen, checkpoint
        )


@transaction.atomic
def cancel(actor: User, id: str) -> Handover:
    """Ask for the end of a handover that has not passed the cut; its origin goes on as owner."""
    require(actor, Role.OPERATOR, "cancel handovers")
    handover = handover_with(id)
    if not cancellable(handover):
        why = "it has ended" if handover.outcome else f"it is past the cut (phase {handover.phase})"
        raise Conflict(
            f'The handover of "{handover.element}" cannot be cancelled: {why}.',
            safe="The element is owned by exactly one node.",
            next="Move the element back when it has ended.",
        )
    if not handover.cancel_requested:
        Handover.objects.filter(pk=handover.pk).update(cancel_requested=True)
        handover.cancel_requested = True
        audit(actor, "handover.cancel", str(handover.pk), element=handover.element)
        celery.command(celery.HANDOVER, str(handover.pk))
        announce("handovers", str(handover.pk))
    return handover


def cancellable(handover: Handover) -> bool:
    return (
        handover.outcome is None
        and not handover.cancel_requested
        and handover.phase.upper() in CANCELLABLE_PHASES
    )


def handover_with(id: str) -> Handover:
    handover = Handover.objects.select_related("deployment__pipeline").filter(pk=id).first()
    if handover is None:
        raise Missing(f"There is no handover {id}.")
    return handover


def _check_target(group: GroupFacts, target: str) -> None:
    if target not in group.nodes:
        known = ", ".join(sorted(group.nodes)) or "none"
        message = f'there is no node "{target}" (registered: {known})'
        raise Invalid(
            f'There is no node "{target}".',
            safe=UNTOUCHED,
            faults=[{"element": None, "path": "target", "message": message, "code": "unknown_node"}],
        )


def _order(
    actor: User,
    deployment: Deployment,
    group: GroupFacts,
    element: str,
    kind: Handover.Kind,
    strategy: str,
    target: str,
    checkpoint: int | None,
) -> Handover:
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
                created_by=actor,
            )
    except IntegrityError as error:
        raise Conflict(f'"{element}" is being moved already.', safe=UNTOUCHED) from error
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
    )
    celery.command(celery.HANDOVER, str(handover.pk))
    announce("handovers", str(handover.pk))
    announce("elements", name)
    return handover
