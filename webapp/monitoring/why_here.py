"""Says why an element is where it is, from what was recorded when it came there. A choice made now might be
another one."""

from __future__ import annotations

from webapp.handovers.costs import other_nodes
from webapp.handovers.draining import drain_reason, leave_reason
from webapp.handovers.facts import facts_by_element, group_facts
from webapp.handovers.models import Handover
from webapp.monitoring.schemas import WhyHere
from webapp.pipelines.models import Pipeline
from webapp.pipelines.selectors import no_element
from webapp.pipelines.shape import element_of, is_view
from webapp.placements.models import GroupPlacement
from webapp.placements.selectors import active_deployment
from webapp.policies.facts import policy_of
from webapp.policies.models import Decision


def why_here(pipeline: Pipeline, id: str) -> WhyHere:
    """Returns why the element is on its node. Raises Missing if there is no such element."""
    deployment = active_deployment(pipeline)
    element = element_of(deployment.version.document if deployment else pipeline.draft, id)
    if element is None:
        raise no_element(pipeline.name, id)
    if is_view(element.get("type")):
        return _why("The dashboard shows it; it runs on no node.")
    if deployment is None:
        return _why("It is not deployed.")
    group = facts_by_element(group_facts([deployment])[deployment.pk]).get(id)
    if group is None:
        return _why("It has no node yet.")
    rows = GroupPlacement.objects.defer("spec").select_related("node")
    placement = rows.get(deployment=deployment, group=group.group)
    why = _of_placement(placement)
    why |= {"node": placement.node.name, "others": other_nodes(deployment, group)}
    why["at"] = placement.placed_at.isoformat()
    return why


def _why(sentence: str, handover: str | None = None, policy: str | None = None) -> WhyHere:
    return {
        "node": None,
        "sentence": sentence,
        "at": None,
        "handover": handover,
        "policy": policy,
        "others": [],
    }


def _of_placement(placement: GroupPlacement) -> WhyHere:
    """Returns the reason of a placement. The caller adds where, when, and the other nodes."""
    if not placement.placed_by:
        return _why(f"Placed on {placement.node.name} when it was deployed: {placement.placed_why}.")
    handover = Handover.objects.select_related("created_by").filter(pk=placement.placed_by).first()
    if handover is None:
        return _why("It was moved there, but no record of that move is kept.")
    by, policy = handover.created_by, policy_of(handover.reason)
    decision = Decision.objects.filter(handover=handover.pk).first() if policy is not None else None
    found = moved_words(handover, by.username if by else None, decision.why if decision else "")
    return _why(found, str(handover.pk), policy)


def moved_words(handover: Handover, by: str | None, decided: str = "") -> str:
    """Returns why a handover brought the element to its node. Pure.

    `by` is the user who ordered it, or None if no user did, or the user was removed since. `decided` is the
    reason of the policy that ordered it.
    """
    origin, reason = handover.origin, handover.reason
    if handover.kind == Handover.Kind.RESTORATION:
        what = "Rewound" if handover.strategy == "rewind" else "Restored"
        first = f"{what} on {handover.target}, from {origin}" if origin else f"{what} on {handover.target}"
        return f"{first}, by {by}." if by else f"{first}, {reason or 'by a user who was removed since'}."
    first = f"Moved here from {origin}"
    if by:
        return f"{first} by {by}."
    if reason == drain_reason(origin):
        return f"{first} when {origin} was drained."
    if reason == leave_reason(origin):
        return f"{first} when {origin} was stopped."
    if (policy := policy_of(reason)) is not None:
        return f"{first} by the policy {policy}{f': {decided}' if decided else '.'}"
    return f"{first} ({reason})." if reason else f"{first} by a user who was removed since."
