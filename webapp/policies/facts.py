"""Reads the facts by which policies decide: nodes with their samples, groups, moves. Control and dry runs
read the same facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from pipeline_runtime.model.ids import document_group
from pipeline_runtime.placement.policy import rules
from pipeline_runtime.placement.policy.facts import HOUR_S, GroupNow, Latency, Move, NodeNow, Sample
from pipeline_runtime.wire import keys
from webapp.backends.histories import points
from webapp.handovers.facts import group_facts
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.pins import pinned_elements
from webapp.pipelines.shape import names_of
from webapp.placements.fleet import apart_groups, candidate, machine_of
from webapp.placements.group_state import GroupFacts, migrate_refusal, rows_per_s
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.selectors import active_deployments
from webapp.policies.models import Policy

REASON = "policy "
"""The reason of a handover that a policy ordered begins with it; the policy's name follows."""
ELEMENT_POINT_S = 2.0
"""The time between two points of an element."""


@dataclass(frozen=True)
class DeployedGroup:
    deployment: Deployment
    facts: GroupFacts
    element: str  # the first of its elements
    now: GroupNow


def pure(row: Policy) -> rules.Policy:
    """Returns the policy in the form that decides. Raises ValueError when its rule is none."""
    return rules.Policy(row.name, rules.rule_of(row.rule), row.mode, row.moves_per_hour)


def samples_of(nodes: Iterable[str], newest: int, redis_url: str) -> dict[str, list[Sample]]:
    """Returns the newest samples of each node, oldest first. Raises BackendAway."""
    names = list(nodes)
    found = points([keys.node_samples(name) for name in names], newest, redis_url)
    return {name: [_sample(point) for point in each] for name, each in zip(names, found, strict=True)}


def _sample(point: Mapping[str, Any]) -> Sample:
    return Sample(
        at_s=point["t"] / 1000,
        cpu_ratio=point.get("cpu_ratio"),
        battery_ratio=point.get("battery_ratio"),
        on_battery=point.get("on_battery"),
    )


def nodes_then(nodes: Iterable[Node]) -> list[NodeNow]:
    """Returns nodes for a dry run, where samples show whether a node was up."""
    rows = {node.name: node for node in nodes}
    return [
        replace(now, refusal=f"is {closed}" if (closed := rows[now.name].closed) else None)
        for now in nodes_now(rows.values(), {})
    ]


def nodes_now(nodes: Iterable[Node], samples: Mapping[str, list[Sample]]) -> list[NodeNow]:
    return [
        NodeNow(
            node.name,
            samples.get(node.name, ()),
            cores=node.cores,
            machine=machine_of(node),
            refusal=candidate(node).refusal,
            draining=node.emptied_since is not None,
            site=node.place,
            up=node.up,
            seen_s=node.last_seen_at.timestamp() if node.last_seen_at else None,
        )
        for node in nodes
    ]


def groups_now() -> dict[str, DeployedGroup]:
    """Returns all groups that run or have to run, by `<deployment>.<group>`, without their inputs and
    latencies."""
    deployments = {row.pk: row for row in active_deployments()}
    found = {}
    for id, groups in group_facts(deployments.values()).items():
        deployment = deployments[id]
        names = names_of(deployment.version.document)
        home = {each: group.group for group in groups.values() for each in group.elements}
        apart = apart_groups(deployment.version.document, home)
        pinned = pinned_elements(deployment.version.document)
        for group in groups.values():
            if group.node is None or not group.elements:
                continue
            called = names.get(document_group(group.group), document_group(group.group))
            title = f"{called} of {deployment.pipeline.title}"
            key = f"{id}.{group.group}"
            others = frozenset(f"{id}.{other}" for other in apart.get(group.group, ()))
            now = _group(key, title, group, deployment.pipeline.name)
            is_pinned = not pinned.isdisjoint(group.elements)
            now = replace(now, apart=others, pinned=is_pinned)
            found[key] = DeployedGroup(deployment, group, group.elements[0], now)
    return found


def inputs_of(deployments: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns `<deployment>.<group>` -> the groups whose streams it reads."""
    rows = list(
        GroupPlacement.objects.filter(deployment__in=list(deployments)).values_list(
            "deployment_id", "group", "spec__elements", "spec__inputs"
        )
    )
    home = {(id, each["id"]): f"{id}.{group}" for id, group, elements, _ in rows for each in elements}
    found = {}
    for id, group, _, inputs in rows:
        producers = {
            stream["source"].partition(".")[0] for stream in inputs or () if not stream.get("external")
        }
        found[f"{id}.{group}"] = tuple(sorted({home[id, each] for each in producers if (id, each) in home}))
    return found


def with_latencies(
    groups: Mapping[str, DeployedGroup], policies: Iterable[rules.Policy], redis_url: str
) -> list[GroupNow]:
    """Returns all groups. Those of pipelines with a latency policy have their inputs, and those that the
    policy is about have what was measured of late. Raises BackendAway."""
    asked = [policy.rule for policy in policies if isinstance(policy.rule, rules.LatencyAbove)]
    longest_s = {
        id: max(
            (rule.for_s for rule in asked if rule.concerns(group.now.pipeline, group.now.elements)), default=0
        )
        for id, group in groups.items()
    }
    wanted = [id for id, seconds in longest_s.items() if seconds]
    if not wanted:
        return [group.now for group in groups.values()]
    # Twice as long as it has to last: what was beyond the limit before counts until it is over.
    newest = round(2 * max(longest_s.values()) / ELEMENT_POINT_S)
    histories = [keys.element_history(groups[id].deployment.pk, groups[id].element) for id in wanted]
    found = points(histories, newest, redis_url)
    latencies = {id: [_latency(point) for point in each] for id, each in zip(wanted, found, strict=True)}
    inputs = inputs_of({groups[id].deployment.pk for id in wanted})
    return [
        replace(group.now, inputs=inputs.get(id, ()), latencies=latencies.get(id, ()))
        for id, group in groups.items()
    ]


def latencies_of(groups: Mapping[str, DeployedGroup], redis_url: str) -> dict[str, list[Latency]]:
    """Returns group -> what was measured in the last day, oldest first. Raises BackendAway."""
    names = [keys.group_samples(group.deployment.pk, group.facts.group) for group in groups.values()]
    found = points(names, keys.SAMPLES_MAX, redis_url)
    return {id: [_latency(point) for point in each] for id, each in zip(groups, found, strict=True)}


def _latency(point: Mapping[str, Any]) -> Latency:
    # The figure is that of the newest batches, however long ago they were.
    flows = rows_per_s(point) > 0
    return Latency(point["t"] / 1000, point.get("latency_ms_p95") if flows else None)


def _group(id: str, title: str, facts: GroupFacts, pipeline: str) -> GroupNow:
    owner = facts.owner
    rows = rows_per_s(owner.rates) if owner is not None else 0.0
    state = (owner.status.get("state_bytes") or 0) if owner is not None else 0
    target_ms = owner.status.get("latency_ms_target") if owner is not None else None
    return GroupNow(
        id,
        title,
        facts.node or "",
        rows,
        state,
        migrate_refusal(facts),
        pipeline,
        facts.elements,
        latency_ms_target=target_ms,
    )


def policy_of(reason: str) -> str | None:
    """Returns the policy that ordered a handover with this reason, or None if none did."""
    return reason.removeprefix(REASON) if reason.startswith(REASON) else None


def moves_now(now: datetime) -> list[Move]:
    """Returns the moves of the last hour, and all that are running."""
    recent = Q(created_at__gte=now - timedelta(seconds=HOUR_S)) | Q(outcome__isnull=True)
    return [
        Move(
            group=f"{row.deployment_id}.{row.group}",
            origin=row.origin,
            target=row.target,
            at_s=row.created_at.timestamp(),
            ended_s=(row.ended_at or row.created_at).timestamp() if row.outcome else None,
            done=row.outcome == Handover.Outcome.DONE,
            policy=policy_of(row.reason),
        )
        for row in Handover.objects.filter(recent)
    ]
