"""Removes standbys that are no longer needed: those whose time is over, and those that handovers left."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.audit.announcements import announce
from webapp.handovers.models import Handover
from webapp.placements.models import ExtraReplica, GroupPlacement, Replica
from workers.control.context import ControlContext


def tidy_copies(context: ControlContext) -> None:
    """Drops the copies that nobody needs. Leaves a group alone while a handover of it is under way."""
    changed = False
    for pk in ExtraReplica.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            # Read here, and locked: a user may just now decide to keep this standby.
            rows = ExtraReplica.objects.select_for_update(of=("self",))
            extra = rows.select_related("deployment__pipeline").filter(pk=pk).first()
            if extra is None:
                continue
            running = Handover.objects.filter(
                deployment=extra.deployment_id, group=extra.group, outcome__isnull=True
            )
            if not running.exists() and _tidied(extra):
                changed = True
                announce()
    if changed:
        context.desired.notify()


def _tidied(extra: ExtraReplica) -> bool:
    """Returns whether the copy was changed or dropped."""
    if extra.wanted and extra.role != "standby":
        # A rewind that failed left it stopped.
        return bool(ExtraReplica.objects.filter(pk=extra.pk).update(role="standby", handover="", succeed=""))
    over = extra.until is not None and extra.until <= timezone.now()
    # What a handover that failed after the cut left is kept until the new owner really owns.
    left = bool(extra.handover) and not extra.wanted and _is_owned(extra)
    if over or left:
        extra.delete()
    return over or left


def _is_owned(extra: ExtraReplica) -> bool:
    placement = GroupPlacement.objects.filter(deployment=extra.deployment_id, group=extra.group).first()
    if placement is None:
        return True
    owners = Replica.objects.filter(deployment=extra.deployment_id, group=extra.group, role="owner")
    return owners.filter(node=placement.node_id).exists()
