"""Keeps and drops hot standbys. An action writes the wanted copies, and control creates or removes them."""

from __future__ import annotations

from django.db import transaction

from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.handovers.facts import deployed_group
from webapp.nodes.models import Node
from webapp.placements.copies import STANDBY, next_generation, standbys
from webapp.placements.group_state import drop_standby_refusal, keep_standby_refusal, next_step
from webapp.placements.models import ExtraReplica, GroupPlacement
from webapp.problems import Conflict, Invalid

UNTOUCHED = "The element keeps running."


@transaction.atomic
def keep_standby(actor: User, pipeline: str, element: str, node: str) -> None:
    """Keeps one hot standby of the element's group, on `node`. Drops a standby on another node."""
    require(actor, Role.OPERATOR, "keep standbys")
    deployment, group = deployed_group(pipeline, element, "have a standby")
    if node not in group.nodes:
        known = ", ".join(sorted(group.nodes)) or "none"
        message = f'there is no node "{node}" (registered: {known})'
        raise Invalid(
            f'There is no node "{node}".',
            safe=UNTOUCHED,
            next="Choose one of the registered nodes.",
            faults=[{"element": None, "path": "node", "message": message, "code": "unknown_node"}],
        )
    refusal = keep_standby_refusal(group, node)
    if refusal is not None:
        name = deployment.name_of(element)
        raise Conflict(
            f"{name} cannot have a standby on {node}: {refusal}.",
            safe=UNTOUCHED,
            next=next_step(group, node),
        )
    # Locked: when two users keep one at the same time, the second sees the first's.
    GroupPlacement.objects.select_for_update().get(deployment=deployment, group=group.group)
    there = standbys(deployment.pk, group.group)
    if not any(extra.node.name == node and extra.wanted for extra in there):
        ExtraReplica.objects.filter(pk__in=[extra.pk for extra in there if extra.wanted]).delete()
        kept = ExtraReplica.objects.filter(deployment=deployment, group=group.group, node__name=node)
        # A standby that follows there already, for example since a move, stays as it is.
        if not kept.filter(role=STANDBY).update(wanted=True, until=None):
            ExtraReplica.objects.update_or_create(
                deployment=deployment,
                group=group.group,
                node=Node.objects.get(name=node),
                defaults={
                    "role": STANDBY,
                    "wanted": True,
                    "until": None,
                    "source": None,
                    "generation": next_generation(deployment.pk, group.group),
                },
            )
        audit(actor, "element.keep_standby", f"{pipeline}/{element}", group=group.group, node=node)
        commands.send(tasks.DESIRED_CHANGED)
        announce()


@transaction.atomic
def drop_standby(actor: User, pipeline: str, element: str) -> None:
    """Drops all standbys of the element's group. A second call changes nothing."""
    require(actor, Role.OPERATOR, "drop standbys")
    deployment, group = deployed_group(pipeline, element, "drop its standby")
    refusal = drop_standby_refusal(group)
    if refusal is not None and group.standbys:
        name = deployment.name_of(element)
        raise Conflict(f"{name} cannot drop its standby: {refusal}.", safe=UNTOUCHED, next=next_step(group))
    if group.standbys:
        nodes = [standby.node for standby in group.standbys]
        ExtraReplica.objects.filter(deployment=deployment, group=group.group, role=STANDBY).delete()
        audit(actor, "element.drop_standby", f"{pipeline}/{element}", group=group.group, nodes=nodes)
        commands.send(tasks.DESIRED_CHANGED)
        announce()
