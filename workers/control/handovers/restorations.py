"""Orders restorations of what silent nodes ran. Each look starts from the database, so nothing is missed.

Some groups are left to people: one whose operator may give other results when it runs again, one whose
restoration a user has cancelled, one whose restoration has failed too often, one that is held because it ends
its nodes, and one that was restored so often that it may be what ends them. A node that said goodbye was
stopped on purpose, so nothing of it is restored. Copies that a policy keeps at a site are restored only
there.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from pipeline_runtime.model.desired import JavaEnd, held_error, is_held, joined_ends
from webapp.audit.models import Event
from webapp.audit.records import record_event, silence_of
from webapp.handovers import actions
from webapp.handovers.facts import coming, group_facts
from webapp.handovers.models import Handover
from webapp.handovers.targets import restoration_target
from webapp.nodes.models import Node
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import (
    GroupFacts,
    restoration_strategy,
)
from webapp.placements.models import Deployment, GroupPlacement, Replica
from webapp.placements.names import Names
from webapp.placements.selectors import java_ends
from webapp.policies.sites import keeping_policies, kept_at, only_at
from webapp.problems import Problem
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers.culprits import SOON, Stay, ends_of
from workers.control.handovers.effects import attempts_of
from workers.control.handovers.retries import GivenUp, Later, tries_again
from workers.control.replica_rows import reported

log = logging.getLogger(__name__)

# A group that ends every node that runs it must not end them all, together with everything else there.
RESTORED_WITHIN = timedelta(minutes=15)
RESTORED_MAX = 3


def order_restorations(context: ControlContext, bulkhead: Bulkhead) -> None:
    """Orders a handover for each group whose node fell silent, unless it has one."""
    if context.settings.restore != "auto":
        return
    names, policies = Names(), keeping_policies()
    fleet: Fleet | None = None  # what this look has ordered counts for the groups that come after
    for placement in on_silent_nodes().select_related("node", "deployment__pipeline", "deployment__version"):
        name = names.of(placement.deployment_id, placement.group)
        alert = f"{name} could not be restored from {placement.node.name}. It is tried again."
        key = f"restoring {placement.deployment_id}.{placement.group}"
        with bulkhead.only(key, alert, placement.node.name), transaction.atomic():
            facts = group_facts([placement.deployment])[placement.deployment_id].get(placement.group)
            if facts is not None and facts.handover is None and facts.node == placement.node.name:
                kept = kept_at(policies, placement.deployment, facts, placement.node.place)
                if kept is not None:
                    facts = only_at(facts, kept[0])
                fleet = fleet or Fleet(coming())
                _restore(placement, facts, name, kept, fleet)


def on_silent_nodes() -> QuerySet[GroupPlacement]:
    """Returns the groups that a node which fell silent should run."""
    return GroupPlacement.objects.filter(
        node__up=False,
        node__silent_at__isnull=False,
        retire=False,
        deployment__status=Deployment.Status.RUNNING,
    )


def _restore(
    placement: GroupPlacement, group: GroupFacts, name: str, kept: tuple[str, str] | None, fleet: Fleet
) -> None:
    """`kept` has the site at which a policy keeps the group, and that policy."""
    node = placement.node
    if group.follow == "none":
        _tell_once(
            placement,
            "element.not_restored",
            f"No automatic restoration of {name}. Processing the same rows again may give other results than "
            f"those since the checkpoint. Restore by hand, or wait for {node.name}.",
        )
        return
    ends = _with_fall(placement)
    if is_held(ends):
        held = held_error(ends)
        text = f"No automatic restoration of {name}. {held.message} {held.next} Nothing committed is lost."
        _tell_once(placement, "element.not_restored", text)
        return
    again = tries_again(
        attempts_of(_tried(placement)), timezone.now(), doing="restoration", by_hand="restore it by hand"
    )
    if isinstance(again, GivenUp):
        if not again.cancelled:  # a person who cancelled wants to wait for the node
            _tell_once(
                placement,
                "element.not_restored",
                f"No automatic restoration of {name} any more: {again.why}. Nothing committed is lost.",
            )
        return
    if _restored_lately(placement) >= RESTORED_MAX:
        _tell_once(
            placement,
            "element.not_restored",
            f"No automatic restoration of {name}: after {RESTORED_MAX} of them within "
            f"{RESTORED_WITHIN.seconds // 60} minutes, each time its node fell silent. Perhaps it ends the "
            "nodes: see their logs, for instance whether memory was short. Restore by hand, or wait for "
            f"{node.name}. Nothing committed is lost.",
        )
        return
    if isinstance(again, Later):
        return
    only = group.nodes if kept is not None else None
    target, refusal = restoration_target(placement.deployment, group, fleet, again.without, only=only)
    if target is None:
        waits = f"Restoration of {name} waits: {refusal}. It goes on when a node comes up."
        if kept is not None:
            site, policy = kept
            waits = (
                f"Restoration of {name} waits for {site}: the policy {policy} keeps copies there. "
                "Nothing is lost."
            )
        _tell_once(placement, "element.waits", waits)
        return
    if _order(placement, group, target, name):
        fleet.move(placement.deployment_id, placement.group, target)


def _with_fall(placement: GroupPlacement) -> tuple[JavaEnd, ...]:
    """Returns the ends that the group may have caused, with its newest node's if that fell silent as well.
    They are kept with the placement, so that each node knows of them."""
    ends = java_ends(placement)
    newest = _by_itself().filter(deployment=placement.deployment_id, group=placement.group).first()
    node = newest and Node.objects.filter(name=newest.target, up=False, silent_at__isnull=False).first()
    if node is None:
        return ends
    stays = _by_itself().filter(target=node.name, created_at__gte=node.silent_at - SOON)
    found = ends_of((placement.deployment_id, placement.group), node.name, node.silent_at, map(_stay, stays))
    joined = joined_ends(ends, found)
    if joined != ends:
        placement.java_ends = [end.model_dump(mode="json") for end in joined]
        placement.save(update_fields=["java_ends"])
    return joined


def _by_itself() -> QuerySet[Handover]:
    """Returns the restorations that control has ordered, newest first."""
    return Handover.objects.filter(kind=Handover.Kind.RESTORATION, created_by=None)


def _stay(handover: Handover) -> Stay:
    row = Replica.objects.filter(
        deployment=handover.deployment_id, group=handover.group, node__name=handover.target
    ).first()
    status = reported(row)
    committed = handover.measured.get("first_commit_at_ms") is not None
    if status is not None and status.takeover is not None and status.takeover.node == handover.target:
        committed = committed or status.takeover.first_commit_at_ms is not None
    return Stay(
        (handover.deployment_id, handover.group),
        handover.origin,
        handover.created_at,
        committed,
        skip=status.skip if status is not None else None,
        reads=status.reads if status is not None else "",
    )


def _order(placement: GroupPlacement, group: GroupFacts, target: str, name: str) -> bool:
    """Orders the restoration. Returns False if something else was done with the group meanwhile."""
    node, deployment = placement.node, placement.deployment
    silent_s = (timezone.now() - node.last_seen_at).total_seconds() if node.last_seen_at else 0.0
    reason = f"automatically, {silent_s:.1f} s after {node.name} fell silent"
    element = placement.spec["elements"][0]["id"]
    try:
        handover = actions.order(
            None,
            deployment,
            group,
            element=element,
            kind=Handover.Kind.RESTORATION,
            strategy=restoration_strategy(group, target, None),
            target=target,
            reason=reason,
        )
    except Problem as problem:
        log.info("%s is not restored now: %s", group.group, problem)
        return False
    record_event(
        "element.restoring",
        f"Restoration of {name} on {target} begins, {reason}.",
        severity="warning",
        pipeline=deployment.pipeline.name,
        element=element,
        node=node.name,
        cause=silence_of(node.name),
        handover=str(handover.pk),
    )
    return True


def _tried(placement: GroupPlacement) -> QuerySet[Handover]:
    """Returns the restorations of the group since its node fell silent, newest first."""
    return Handover.objects.filter(
        deployment=placement.deployment_id,
        group=placement.group,
        kind=Handover.Kind.RESTORATION,
        origin=placement.node.name,
        created_at__gte=placement.node.silent_at,
    )


def _restored_lately(placement: GroupPlacement) -> int:
    """Returns how often control has restored the group shortly before its node fell silent."""
    return Handover.objects.filter(
        deployment=placement.deployment_id,
        group=placement.group,
        kind=Handover.Kind.RESTORATION,
        outcome=Handover.Outcome.DONE,
        created_by=None,
        created_at__gte=placement.node.silent_at - RESTORED_WITHIN,
    ).count()


def _tell_once(placement: GroupPlacement, kind: str, message: str) -> None:
    """Tells it once for each time that the node falls silent."""
    node: Node = placement.node
    pipeline, element = placement.deployment.pipeline.name, placement.spec["elements"][0]["id"]
    told = Event.objects.filter(kind=kind, pipeline=pipeline, element=element, at__gte=node.silent_at)
    if not told.exists():
        record_event(
            kind,
            message,
            severity="error",
            pipeline=pipeline,
            element=element,
            node=node.name,
            cause=silence_of(node.name),
        )
