"""Reads the facts by which policies of sites decide: pipelines with copies at sites, recent changes to these,
and where copies may go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Q

from pipeline_runtime.placement.policy.facts import HOUR_S, Copied, CopyChange, GroupNow
from pipeline_runtime.placement.policy.rules import Policy as PurePolicy, Sites, rule_of
from pipeline_runtime.planning import copies
from webapp.handovers.facts import coming
from webapp.handovers.targets import restoration_target
from webapp.nodes.models import Node
from webapp.operations.copies import draft_refusal
from webapp.operations.models import Operation
from webapp.pipelines.shape import elements_of
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import GroupFacts
from webapp.placements.models import Deployment
from webapp.policies.facts import DeployedGroup, policy_of
from webapp.policies.models import Policy


def copied_now(policies: Iterable[PurePolicy], groups: Mapping[str, DeployedGroup]) -> list[Copied]:
    """Returns running pipelines that have copies at sites and that one of the policies is about."""
    rules = [policy.rule for policy in policies if isinstance(policy.rule, Sites)]
    if not rules:
        return []
    known = set(Node.objects.exclude(site="").values_list("site", flat=True))
    deployments = {group.deployment.pk: group.deployment for group in groups.values()}
    upgrading = set(
        Operation.objects.filter(status__in=Operation.UNFINISHED).values_list("deployment_id", flat=True)
    )
    found = []
    for id, deployment in deployments.items():
        name, document = deployment.pipeline.name, deployment.version.document
        if deployment.status != Deployment.Status.RUNNING or not any(rule.concerns(name) for rule in rules):
            continue
        parts = copies.parts(document)
        if not parts:
            continue
        home = {
            element: key for key, g in groups.items() if g.deployment.pk == id for element in g.facts.elements
        }
        at: dict[str, set[str]] = {}
        for sites in parts.values():
            for site, ids in sites.items():
                at.setdefault(site, set()).update(home[each] for each in ids if each in home)
        found.append(
            Copied(
                name,
                {site: tuple(sorted(each)) for site, each in at.items()},
                only=frozenset(site for sites in parts.values() if len(sites) == 1 for site in sites),
                lacks=frozenset(site for site in known if copies.lacking(document, site)),
                refusal=draft_refusal(deployment),
                changing=id in upgrading,
            )
        )
    return found


def changes_now(now: datetime) -> list[CopyChange]:
    """Returns the changes that policies ordered in the last hour."""
    recent = Q(created_at__gte=now - timedelta(seconds=HOUR_S))
    rows = Operation.objects.filter(recent).exclude(site="").select_related("deployment__pipeline")
    return [
        CopyChange(
            row.deployment.pipeline.name, row.site, policy_of(row.reason) or "", row.created_at.timestamp()
        )
        for row in rows
    ]


def with_refuges(
    measured: Iterable[GroupNow], groups: Mapping[str, DeployedGroup], copied: Iterable[Copied]
) -> list[GroupNow]:
    """Adds to copies whose node does not answer where each would be restored now."""
    at_sites = {group for each in copied for ids in each.at.values() for group in ids}
    down = {id for id in at_sites if id in groups and not groups[id].facts.node_is_up}
    if not down:
        return list(measured)
    fleet = Fleet(coming())
    return [
        replace(group, refuge=_refuge(groups[group.id], fleet)) if group.id in down else group
        for group in measured
    ]


def _refuge(group: DeployedGroup, fleet: Fleet) -> str | None:
    """Returns where a copy would be restored. Leaves to a person a group that may give other results when it
    processes the same rows twice."""
    if group.facts.follow == "none":
        return None
    return restoration_target(group.deployment, group.facts, fleet)[0]


# -- copies stay at their site -----------------------------------------------------------------------


def keeping_policies() -> list[tuple[str, Sites]]:
    """Returns (name, rule) of policies that leave copies at their site when it goes."""
    rows = [(row.name, rule_of(row.rule)) for row in Policy.objects.filter(enabled=True, rule__kind="sites")]
    return [(name, rule) for name, rule in rows if isinstance(rule, Sites) and rule.gone != "elsewhere"]


def kept_at(
    policies: Iterable[tuple[str, Sites]], deployment: Deployment, group: GroupFacts, place: str
) -> tuple[str, str] | None:
    """Returns (site, policy) if a policy keeps the group, which runs at `place`, from going on elsewhere, or
    None if it may go on anywhere."""
    policy = next((name for name, rule in policies if rule.concerns(deployment.pipeline.name)), None)
    if policy is None:
        return None
    sites = {
        each.get("site")
        for each in elements_of(deployment.version.document)
        if each["id"] in group.elements and each.get("copy_of")
    }
    return (place, policy) if place in sites else None


def only_at(group: GroupFacts, site: str) -> GroupFacts:
    """Returns the group as if there were no nodes elsewhere."""
    there = {node.name for node in Node.objects.all() if node.place == site}
    return replace(
        group,
        nodes={name: node for name, node in group.nodes.items() if name in there},
        standbys=tuple(each for each in group.standbys if each.node in there),
        recovery_node=group.recovery_node if group.recovery_node in there else "",
    )
