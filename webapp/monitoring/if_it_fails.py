"""Says what would happen to the groups of a node if the node died now: where each group goes on, and how long
that takes.

It makes the same choices as an automatic restoration, one group after another, in the order in which control
takes the groups. A group that goes to a node counts there for the next groups.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Literal

from django.conf import settings

from pipeline_runtime.model.desired import is_held
from pipeline_runtime.model.ids import document_group
from webapp.handovers.facts import coming, group_facts
from webapp.handovers.forecast import Past, forecast_json
from webapp.handovers.schemas import GroupAfter, NodeFailure
from webapp.handovers.selectors import past_of
from webapp.handovers.targets import restoration_target
from webapp.nodes.models import Node
from webapp.nodes.selectors import node_named
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import (
    GroupFacts,
    restoration_strategy,
)
from webapp.placements.models import Deployment, GroupPlacement, Replica
from webapp.placements.names import Names
from webapp.placements.selectors import busy_nodes, java_ends
from webapp.policies.sites import keeping_policies, kept_at, only_at


def if_node_fails(name: str) -> NodeFailure:
    """Returns what would happen to each group. Raises Missing if there is no such node."""
    node, names = node_named(name), Names()
    placements = list(
        GroupPlacement.objects.select_related("deployment__pipeline", "deployment__version")
        .filter(node=node, role="owner", retire=False, deployment__status__in=Deployment.ACTIVE)
        .order_by("deployment", "group")
    )
    deployments = {placement.deployment for placement in placements}
    facts, running = group_facts(deployments), busy_nodes() - {name}
    pasts = {pipeline: past_of(pipeline) for pipeline in {each.pipeline.name for each in deployments}}
    fleet = Fleet(coming())
    fleet.lose(name)
    policies = keeping_policies()
    outcomes = []
    for placement in placements:
        found = facts[placement.deployment_id].get(placement.group)
        if found is None:
            continue
        dead = replace(found.nodes[name], up=False, ready=False)
        group = replace(found, nodes={**found.nodes, name: dead})
        past = pasts[placement.deployment.pipeline.name]
        kept = kept_at(policies, placement.deployment, group, node.place)
        outcome = _outcome(placement, group, names, past, running, fleet, kept)
        outcomes.append(outcome)
        if outcome["target"] is not None and outcome["by_itself"]:
            fleet.move(placement.deployment_id, placement.group, outcome["target"])
    return {
        "silence_s": settings.FOGLINE.silence_s,
        "groups": outcomes,
        "backups": _backed_up_at(node, names),
    }


def _outcome(
    placement: GroupPlacement,
    group: GroupFacts,
    names: Names,
    past: list[Past],
    running: Set[str],
    fleet: Fleet,
    kept: tuple[str, str] | None,
) -> GroupAfter:
    """Returns what would happen to one group. `kept` is the site at which a policy keeps the group, and that
    policy."""
    if kept is not None:
        group = only_at(group, kept[0])
    pipeline, by_hand = placement.deployment.pipeline.name, _by_hand(placement, group)
    told: GroupAfter = {
        "pipeline": pipeline,
        "element": group.elements[0] if group.elements else document_group(group.group),
        "titles": [names.of(placement.deployment_id, id) for id in group.elements],
        "target": None,
        "way": None,
        "expected": None,
        "bytes": None,
        "by_itself": by_hand is None,
        "reason": by_hand,
    }
    only = group.nodes if kept is not None else None
    target, refusal = restoration_target(placement.deployment, group, fleet, only=only)
    if target is None and kept is not None:
        refusal = f"it waits for {kept[0]}: the policy {kept[1]} keeps its copies there"
    if target is None:
        return {**told, "by_itself": False, "reason": refusal}
    follows = restoration_strategy(group, target, None) == "hot-standby"
    way: Literal["hot-standby", "checkpoint"] = "hot-standby" if follows else "checkpoint"
    there = forecast_json(past, pipeline, group, running)[target]
    to_fetch = 0 if there["had"] else there["bytes"]
    return {
        **told,
        "target": target,
        "way": way,
        "expected": there["restore"][way],
        "bytes": None if follows else to_fetch,
    }


def _by_hand(placement: GroupPlacement, group: GroupFacts) -> str | None:
    """Returns why a person has to order the restoration, or None if Fogline restores the group by itself."""
    if settings.FOGLINE.restore != "auto":
        return "automatic restoration is switched off (FOGLINE_RESTORE)"
    if group.follow == "none":
        return "it may give different results when it runs again on the same rows, so a person decides"
    if is_held(java_ends(placement)):
        return "it is held back because it ended the Java process of nodes"
    return None


def _backed_up_at(node: Node, names: Names) -> list[str]:
    """Returns the groups that run elsewhere and have a copy of their newest checkpoint on this node. If the
    node died, another node would get that copy."""
    owners = Replica.objects.filter(role="owner", deployment__status__in=Deployment.ACTIVE).exclude(node=node)
    return sorted(
        names.of(row.deployment_id, row.group)
        for row in owners
        if node.name in (row.status.get("checkpoint_where") or ())
    )
