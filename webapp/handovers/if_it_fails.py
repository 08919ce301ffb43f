"""What would come of the groups of a node if it died now: where each goes on, and how long that takes.

By the same choices as a restoration by itself, one group after another, as the control side takes them: each
that goes somewhere counts there for the ones that follow.
"""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from pipeline_runtime.model.desired import JavaEnd, is_held
from pipeline_runtime.model.ids import document_group
from webapp.handovers.facts import group_facts, node_facts
from webapp.handovers.forecast import forecast_json
from webapp.handovers.schemas import GroupAfter, NodeFailure
from webapp.handovers.selectors import past_of
from webapp.nodes.models import Node
from webapp.nodes.selectors import node_named
from webapp.pipelines.shape import names_of
from webapp.placements.group_state import (
    GroupFacts,
    NodeFacts,
    restoration_strategy,
    restoration_target,
    restore_refusal,
)
from webapp.placements.models import Deployment, GroupPlacement, Replica
from webapp.placements.names import Names
from webapp.placements.selectors import busy_nodes


def if_node_fails(name: str) -> NodeFailure:
    """Missing where there is no such node."""
    node = node_named(name)
    placements = list(
        GroupPlacement.objects.select_related("deployment__pipeline", "deployment__version")
        .filter(node=node, role="owner", retire=False, deployment__status__in=Deployment.ACTIVE)
        .order_by("deployment", "group")
    )
    facts = group_facts({placement.deployment for placement in placements})
    left = _without(name)
    outcomes = []
    for placement in placements:
        found = facts[placement.deployment_id].get(placement.group)
        if found is None:
            continue
        outcome = _outcome(placement, replace(found, nodes=left), name)
        outcomes.append(outcome)
        if outcome["target"] is not None and outcome["by_itself"]:
            there = left[outcome["target"]]
            left = {**left, there.name: replace(there, groups=there.groups + 1)}
    return {
        "silence_s": settings.FOGLINE.silence_s,
        "groups": outcomes,
        "backups": _backed_up_at(node),
    }


def _without(name: str) -> dict[str, NodeFacts]:
    known = node_facts()
    return {**known, name: replace(known[name], up=False, ready=False)}


def _outcome(placement: GroupPlacement, group: GroupFacts, failed: str) -> GroupAfter:
    deployment = placement.deployment
    names = names_of(deployment.version.document)
    target = restoration_target(group)
    refusal = restore_refusal(group, target)
    by_hand = _by_hand(placement, group)
    status = group.owner.status if group.owner is not None else {}
    told: GroupAfter = {
        "pipeline": deployment.pipeline.name,
        "element": group.elements[0] if group.elements else document_group(group.group),
        "titles": [names.get(id, id) for id in group.elements],
        "target": None,
        "way": None,
        "expected": None,
        "bytes": None,
        "by_itself": by_hand is None,
        "reason": by_hand,
    }
    if target is None or refusal is not None:
        return {**told, "by_itself": False, "reason": refusal}
    way = restoration_strategy(group, target, None)
    pipeline, running = deployment.pipeline.name, busy_nodes() - {failed}
    there = forecast_json(past_of(pipeline), pipeline, group, running)[target]
    follows = way == "hot-standby"
    return {
        **told,
        "target": target,
        "way": "hot-standby" if follows else "checkpoint",
        "expected": there["restore"]["hot-standby" if follows else "checkpoint"],
        # A copy that lies there already is not fetched; of none yet, nobody knows how large it will be.
        "bytes": None if follows else 0 if there["had"] else status.get("checkpoint_bytes"),
    }


def _by_hand(placement: GroupPlacement, group: GroupFacts) -> str | None:
    """Why a person has to order its restoration; None: it comes by itself."""
    if settings.FOGLINE.restore != "auto":
        return "nothing is restored by itself here (FOGLINE_RESTORE)"
    if group.follow == "none":
        return "run twice on the same rows it may give other results, so a person decides"
    if is_held(tuple(JavaEnd.model_validate(end) for end in placement.java_ends)):
        return "it is held, since it ended the Java process of nodes"
    return None


def _backed_up_at(node: Node) -> list[str]:
    """What runs elsewhere and has a copy of its newest checkpoint there: another node gets it then."""
    names = Names()
    owners = Replica.objects.filter(role="owner", deployment__status__in=Deployment.ACTIVE).exclude(node=node)
    return sorted(
        names.of(row.deployment_id, row.group)
        for row in owners
        if node.name in (row.status.get("checkpoint_where") or ())
    )
