"""Empties a node: each of its groups is moved away, one after another."""

from __future__ import annotations

import logging

from django.db import transaction

from pipeline_runtime.placement.choose import NoPlacement, choose_target
from webapp.handovers.actions import order
from webapp.handovers.models import Handover
from webapp.monitoring.records import announce, record_event
from webapp.nodes.models import Node
from webapp.pipelines.group_state import default_strategy
from webapp.pipelines.models import Deployment, ExtraReplica, GroupPlacement
from webapp.pipelines.selectors import group_facts
from webapp.problems import Conflict
from workers.control.candidates import candidates
from workers.control.context import ControlContext
from workers.control.handovers import drive_handover

log = logging.getLogger(__name__)


def drain(name: str, context: ControlContext) -> None:
    """Cordon the node and migrate what runs there; a group that cannot move is reported and stays."""
    Node.objects.filter(name=name).update(cordoned=True)
    _drop_standbys(name, context)
    tried: set[tuple[str, str]] = set()
    moved, stayed = 0, []
    while not context.closing.is_set():
        here = GroupPlacement.objects.select_related("deployment__pipeline").filter(
            node__name=name, deployment__status__in=Deployment.ACTIVE
        )
        placement = next((p for p in here if (p.deployment_id, p.group) not in tried), None)
        if placement is None:
            break
        tried.add((placement.deployment_id, placement.group))
        handover = _order(placement, name)
        if handover is None:
            stayed.append(placement.group)
            continue
        drive_handover(str(handover.pk), context)
        handover.refresh_from_db()
        if handover.outcome == Handover.Outcome.DONE:
            moved += 1
        else:
            stayed.append(placement.group)
    if stayed:
        text = f"{name}: {moved} groups moved away, these stayed: {', '.join(stayed)}. See their handovers."
        record_event("node.drained", text, severity="warning", node=name)
    else:
        record_event("node.drained", f"{name} is empty: {moved} groups moved away.", node=name)
    announce("nodes", name)


def _drop_standbys(name: str, context: ControlContext) -> None:
    """Those that wait here for a former owner's return, or because a user wanted them."""
    with transaction.atomic():
        busy = Handover.objects.filter(outcome__isnull=True).values_list("deployment", "group")
        for extra in ExtraReplica.objects.filter(node__name=name, role="standby"):
            if (extra.deployment_id, extra.group) in busy:
                continue  # its handover decides; a cordoned node keeps none after it
            if extra.wanted:
                text = f"{extra.group} has no standby any more: {name} is drained. Keep one elsewhere."
                record_event("standby.dropped", text, severity="warning", element=extra.group, node=name)
            extra.delete()
    context.desired.notify()


def _order(placement: GroupPlacement, origin: str) -> Handover | None:
    """A handover for one group; the one under way if there is one; None: nowhere to go."""
    with transaction.atomic():
        running = Handover.objects.filter(
            deployment=placement.deployment_id, group=placement.group, outcome__isnull=True
        ).first()
        if running is not None:
            return running
        deployment = placement.deployment
        group = group_facts([deployment])[deployment.pk][placement.group]
        elements = placement.spec["elements"]
        try:
            target = choose_target(placement.group, len(elements), origin, candidates())
            return order(
                None,
                deployment,
                group,
                element=elements[0]["id"],
                kind=Handover.Kind.MIGRATION,
                strategy=default_strategy(group),
                target=target,
                reason=f"drain of {origin}",
            )
        except (NoPlacement, Conflict) as error:
            log.warning("%s stays on %s: %s", placement.group, origin, error)
            return None
