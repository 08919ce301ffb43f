"""Empties nodes that are drained, or leaving: each of their groups is moved away, one after another.

Each look starts from the database alone. A mark on the node's row says that it is drained, or leaving
(`workers/control/reports/leaving.py`). The node's handovers say what was tried. So if anything is lost or
dies half way, the next look goes on from there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from pipeline_runtime.handover.phases import Phase
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.placement.choose import NoPlacement
from webapp.audit.announcements import announce
from webapp.audit.models import Event
from webapp.audit.records import record_event
from webapp.handovers.actions import order
from webapp.handovers.draining import drain_reason, leave_reason
from webapp.handovers.facts import coming, group_facts
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.shape import groups_of
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import GroupFacts, default_strategy, migrate_refusal
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement
from webapp.placements.names import Names
from webapp.problems import Conflict
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers.effects import attempts_of
from workers.control.handovers.retries import Later, Now, tries_again

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stuck:
    """A group that cannot move now."""

    name: str  # what people call it
    reason: str
    passing: bool = False  # it can move later without anybody doing anything


def tend_drains(context: ControlContext, bulkhead: Bulkhead) -> None:
    """Takes the next step for each node that is drained, or leaving, and not empty yet."""
    emptied = Node.objects.filter(Q(draining_since__isnull=False) | Q(leaving_since__isnull=False))
    for name in emptied.values_list("name", flat=True):
        alert = f"A group could not be moved away from {name}. Control tries again."
        with bulkhead.only(f"the drain of {name}", alert, name), transaction.atomic():
            # Locked: an uncordon that comes meanwhile ends the drain before or after this step. The key is
            # not locked, so rows that refer to the node can still be written.
            node = Node.objects.select_for_update(no_key=True).filter(name=name).first()
            if node is not None and node.emptied_since is not None:
                _step(node, context)


def _step(node: Node, context: ControlContext) -> None:
    _drop_standbys(node, context)
    placements = list(
        GroupPlacement.objects.select_related("deployment__pipeline", "deployment__version")
        .filter(node=node, deployment__status__in=Deployment.ACTIVE)
        .order_by("deployment__pipeline__name", "group")
    )
    # In both directions: a group that was on its way here when the drain was ordered has to leave again.
    under_way = Handover.objects.filter(Q(origin=node.name) | Q(target=node.name), outcome__isnull=True)
    moving = set(under_way.values_list("deployment", "group"))
    copies = list(ExtraReplica.objects.filter(node=node, deployment__status__in=Deployment.ACTIVE))
    names = Names()
    if not placements and not moving and not copies:
        _end(node)
        return
    kept = [
        Stuck(
            names.of(copy.deployment_id, copy.group),
            "its state is kept here until it runs elsewhere",
            passing=True,
        )
        for copy in copies
        if (copy.deployment_id, copy.group) not in moving
    ]
    stuck = _move_next(node, placements, names)
    _show(node, [*stuck, *kept])
    moves_on = len(stuck) < len(placements) or any(each.passing for each in stuck)
    _tell_node(node, not (moves_on or moving or kept), context)


def _end(node: Node) -> None:
    """Ends the drain of an empty node. A node that is leaving sees by itself that nothing is left."""
    if node.draining_since is None:
        if node.drain_blocked:
            Node.objects.filter(pk=node.pk).update(drain_blocked="")
            announce()
        return
    # Counted by when they ended: the drain may have been ordered again while a group was moving.
    done = _moves(node).filter(outcome=Handover.Outcome.DONE, ended_at__gte=node.draining_since)
    what = elements_moved(done)
    Node.objects.filter(pk=node.pk).update(draining_since=None, drain_blocked="")
    text = f"{node.name} is drained: nothing runs there, {what} moved away. It stays cordoned."
    record_event("node.drained", text, node=node.name)
    announce()


def _tell_node(node: Node, is_stuck: bool, context: ControlContext) -> None:
    """Tells a node that is leaving not to wait for groups that cannot be moved."""
    is_stuck = is_stuck and node.leaving_since is not None
    if is_stuck != node.leaving_stuck:
        Node.objects.filter(pk=node.pk).update(leaving_stuck=is_stuck)
        transaction.on_commit(context.desired.notify)


def elements_moved(moves: QuerySet[Handover]) -> str:
    """Returns how many elements these handovers have moved, such as "2 elements were"."""
    count = sum(
        len(groups_of(each.deployment.version.document).get(document_group(each.group), [each.element]))
        for each in moves.select_related("deployment__version")
    )
    return "1 element was" if count == 1 else f"{count} elements were"


def _moves(node: Node) -> QuerySet[Handover]:
    """Returns the handovers by which drains have moved groups off the node, newest first."""
    moves = Handover.objects.filter(kind=Handover.Kind.MIGRATION, origin=node.name)
    return moves.filter(reason=_reason(node))


def _reason(node: Node) -> str:
    return leave_reason(node.name) if node.draining_since is None else drain_reason(node.name)


def _drop_standbys(node: Node, context: ControlContext) -> None:
    """Drops the standbys on the node."""
    busy = set(Handover.objects.filter(outcome__isnull=True).values_list("deployment", "group"))
    for extra in ExtraReplica.objects.filter(node=node, role="standby"):
        if (extra.deployment_id, extra.group) in busy:
            continue  # its handover decides, and leaves no standby on a cordoned node
        if extra.wanted:
            name = extra.deployment.name_of(extra.group)
            why = "is leaving" if node.draining_since is None else "is drained"
            text = f"No standby of {name} is left: {node.name} {why}. Keep one elsewhere."
            record_event(
                "standby.dropped",
                text,
                severity="warning",
                element=document_group(extra.group),
                node=node.name,
            )
        extra.delete()
        transaction.on_commit(context.desired.notify)


# -- one group after another -------------------------------------------------------------------------


def _move_next(node: Node, placements: list[GroupPlacement], names: Names) -> list[Stuck]:
    """Orders the move of the next group, unless one is moving. Returns the groups that cannot be moved."""
    facts = group_facts({placement.deployment for placement in placements})
    fleet, stuck = Fleet(coming()), []
    under_way = Handover.objects.filter(origin=node.name, outcome__isnull=True)
    if node.leaving_since is not None:
        # Its time is short, and a move that is finishing no longer needs this node.
        under_way = under_way.exclude(phase=Phase.FINISH.value)
    moving = under_way.exists()
    for placement in placements:
        group = facts[placement.deployment_id].get(placement.group)
        if group is None or group.handover is not None or group.deployment_status == "undeploying":
            continue  # it leaves anyway
        target = _target(node, placement, group, fleet, names)
        if isinstance(target, Stuck):
            stuck.append(target)
        elif not moving:
            element = placement.spec["elements"][0]["id"]
            handover = order_move(placement.deployment, group, element, target, _reason(node))
            moving = handover is not None
    return stuck


def _target(
    node: Node, placement: GroupPlacement, group: GroupFacts, fleet: Fleet, names: Names
) -> str | Stuck:
    """Returns the node to which the group goes now, or why it does not go."""
    tried = _moves(node).filter(
        deployment=placement.deployment_id, group=placement.group, created_at__gte=node.emptied_since
    )
    name = names.of(placement.deployment_id, placement.group)
    by_hand = "move it yourself" if node.draining_since is None else f"drain {node.name} again"
    again = tries_again(attempts_of(tried), timezone.now(), doing="move", by_hand=by_hand)
    if not isinstance(again, Now):
        return Stuck(name, again.why, passing=isinstance(again, Later))
    # A node that is leaving will end, and what stays on it then stands still.
    at_any_cost = node.draining_since is None
    try:
        try:
            found = fleet.target(
                placement.deployment,
                placement.group,
                without=again.without,
                planned=placement.recovery_node,
                at_any_cost=at_any_cost,
            )
        except NoPlacement:
            found = fleet.target(placement.deployment, placement.group, at_any_cost=at_any_cost)
    except NoPlacement as error:
        return Stuck(name, error.faults[0].message)
    target = found.node
    refusal = migrate_refusal(group, target)
    return target if refusal is None else Stuck(name, refusal, is_starting(group))


def is_starting(group: GroupFacts) -> bool:
    """Returns whether the group has no owner yet that could hand over, but will have one."""
    owner = group.owner
    failed = owner is not None and bool(owner.status.get("error") or owner.status.get("order_refused"))
    not_yet = owner is None or owner.role != "owner"
    return group.deployment_status == Deployment.Status.DEPLOYING or (
        group.node_is_up and not_yet and not failed
    )


def order_move(
    deployment: Deployment, group: GroupFacts, element: str, target: str, reason: str
) -> Handover | None:
    """Orders a migration that nobody has asked for. `reason` says why. Runs in a transaction.

    Returns None if somebody else has just ordered another handover of the group.
    """
    try:
        return order(
            None,
            deployment,
            group,
            element=element,
            kind=Handover.Kind.MIGRATION,
            strategy=default_strategy(group),
            target=target,
            reason=reason,
        )
    except Conflict as conflict:
        log.info("%s is not moved to %s now (%s): %s", group.group, target, reason, conflict)
        return None


def _show(node: Node, stuck: list[Stuck]) -> None:
    """Shows on the node's page why groups stay. Tells it as an event, once, if a person has to act."""
    text = _in_words(stuck)
    if text != node.drain_blocked:
        Node.objects.filter(pk=node.pk).update(drain_blocked=text)
        announce()
    lasting = _in_words([each for each in stuck if not each.passing])
    if not lasting:
        return
    if node.draining_since is None:
        message = (
            f"{node.name} is leaving, and these cannot be handed over: {lasting} They stand still when it "
            "has ended, until it is started again or they are restored on another node."
        )
    else:
        message = (
            f"The drain of {node.name} cannot go on. {lasting} It goes on by itself when that has changed. "
            f"Uncordon {node.name} to end it."
        )
    told = Event.objects.filter(kind="node.drain_waits", node=node.name, at__gte=node.emptied_since).first()
    if told is None or told.message != message:
        record_event("node.drain_waits", message, severity="warning", node=node.name)


def _in_words(stuck: list[Stuck]) -> str:
    """Returns one sentence for each reason, with all groups that stay because of it."""
    groups: dict[str, list[str]] = {}
    for each in stuck:
        groups.setdefault(each.reason.removesuffix("."), []).append(each.name)
    return " ".join(f"{', '.join(names)}: {reason}." for reason, names in groups.items())
