"""Pauses and resumes elements, and takes their checkpoints."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.handovers.facts import deployed_group
from webapp.placements.group_state import checkpoint_refusal, next_step, pause_refusal, resume_refusal
from webapp.placements.models import GroupPlacement
from webapp.problems import Conflict

ACCEPTS_KEPT = 20
"""How many chosen ways on are kept. Each answers to one thing that happened, and to nothing else."""


@transaction.atomic
def set_paused(actor: User, name: str, element: str, paused: bool) -> None:
    """Pauses or resumes the element's group. A second call changes nothing."""
    doing = "pause" if paused else "resume"
    require(actor, Role.OPERATOR, f"{doing} elements")
    deployment, group = deployed_group(name, element, doing)
    refusal = (pause_refusal if paused else resume_refusal)(group)
    if refusal is not None and group.paused != paused:
        title = deployment.name_of(element)
        raise Conflict(
            f"{title} cannot {doing}: {refusal}.", safe="Nothing was changed.", next=next_step(group)
        )
    if group.paused != paused:
        placement = GroupPlacement.objects.get(deployment=deployment, group=group.group)
        now = timezone.now()
        placement.paused_at = now if paused else None
        if not paused:
            placement.resumed_at = now
            placement.vouch()
        placement.save(update_fields=["paused_at", "resumed_at", *GroupPlacement.VOUCHED])
        audit(actor, f"element.{doing}", f"{name}/{element}", group=group.group)
        commands.send(tasks.DESIRED_CHANGED)
        announce()


@transaction.atomic
def go_on(actor: User, name: str, element: str, way: str) -> None:
    """Lets the element's group go on in one of the ways that its error offers. A second call changes
    nothing."""
    require(actor, Role.OPERATOR, "let elements go on")
    deployment, group = deployed_group(name, element, "go on")
    title = deployment.name_of(element)
    placement = GroupPlacement.objects.select_for_update().get(deployment=deployment, group=group.group)
    if way in placement.accepts:
        return
    error = group.held or (group.owner.status.get("error") if group.owner is not None else None) or {}
    if way not in [each["id"] for each in error.get("ways") or ()]:
        raise Conflict(
            f"{title} cannot continue in that way: it no longer waits for that reason.",
            safe="Nothing was changed.",
            next="Look at its present error.",
        )
    placement.accepts = [*placement.accepts, way][-ACCEPTS_KEPT:]
    placement.vouch()
    placement.save(update_fields=["accepts", *GroupPlacement.VOUCHED])
    audit(actor, "element.go_on", f"{name}/{element}", group=group.group, way=way)
    commands.send(tasks.DESIRED_CHANGED)
    announce()


@transaction.atomic
def take_checkpoint(actor: User, name: str, element: str) -> None:
    require(actor, Role.OPERATOR, "take checkpoints")
    deployment, group = deployed_group(name, element, "take a checkpoint")
    refusal = checkpoint_refusal(group)
    if refusal is not None:
        title = deployment.name_of(element)
        raise Conflict(
            f"{title} cannot take a checkpoint: {refusal}.",
            safe="Its checkpoints so far are kept.",
            next=next_step(group),
        )
    audit(actor, "element.checkpoint", f"{name}/{element}", group=group.group)
    commands.send(tasks.CHECKPOINT, deployment.pk, group.group, has_row=False)
