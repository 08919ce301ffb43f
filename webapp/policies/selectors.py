"""Reads policies and their log, and says what they would have done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

from pipeline_runtime.placement.policy.facts import GroupNow
from pipeline_runtime.placement.policy.replay import Past, ReplayedAct, replay
from pipeline_runtime.placement.policy.rules import (
    FollowUser,
    LatencyAbove,
    Policy as PurePolicy,
    Rule,
    rule_of,
)
from pipeline_runtime.wire.keys import SAMPLES_MAX
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.nodes.links import latencies, stream_ways
from webapp.nodes.models import Node
from webapp.policies import schemas
from webapp.policies.checks import check_rule
from webapp.policies.facts import (
    DeployedGroup,
    groups_now,
    inputs_of,
    latencies_of,
    nodes_then,
    samples_of,
)
from webapp.policies.models import Decision, Policy
from webapp.policies.places import stays_of
from webapp.policies.sites import copied_now
from webapp.problems import Missing

DAY = timedelta(days=1)
ACTS = ("move", "copy", "take-out", "restore")
"""What a policy advises or does."""


def policies() -> list[schemas.Policy]:
    return [policy_json(row) for row in Policy.objects.select_related("created_by")]


def one_policy(id: int) -> schemas.Policy:
    row = Policy.objects.select_related("created_by").filter(pk=id).first()
    if row is None:
        raise Missing(f"There is no policy {id}.", next="See the list of policies.")
    return policy_json(row)


def policy_json(row: Policy) -> schemas.Policy:
    return {
        "id": row.pk,
        "name": row.name,
        "rule": rule_of(row.rule),
        "mode": row.mode,
        "moves_per_hour": row.moves_per_hour,
        "enabled": row.enabled,
        "standing": row.standing,
        "created_by": row.created_by.username if row.created_by else None,
        "created_at": row.created_at.isoformat(),
    }


def advice() -> list[tuple[str, schemas.Standing]]:
    """Returns (policy, what it advises) for policies in mode advice. A person may do it with one click.

    From every policy of sites it also returns what that policy cannot do by itself.
    """
    return [
        (row.name, each)
        for row in Policy.objects.filter(enabled=True)
        for each in row.standing
        if (row.mode == Policy.Mode.ADVICE and each["code"] in ACTS)
        or (each.get("site") and each["code"] == "refused")
    ]


def log(limit: int, policy: str | None = None) -> list[schemas.Decision]:
    """Returns the log, newest first."""
    rows = Decision.objects.all()
    if policy is not None:
        rows = rows.filter(policy=policy)
    return [_decision_json(row) for row in rows[:limit]]


def _decision_json(row: Decision) -> schemas.Decision:
    return {
        "id": row.pk,
        "at": row.at.isoformat(),
        "policy": row.policy,
        "node": row.node,
        "site": row.site or None,
        "pipeline": row.pipeline or None,
        "element": row.element or None,
        "title": row.title or None,
        "code": row.code,
        "target": row.target or None,
        "why": row.why,
        "handover": str(row.handover) if row.handover else None,
        "operation": str(row.operation) if row.operation else None,
    }


def dry_run(actor: User, rule: Rule, moves_per_hour: int) -> schemas.DryRun:
    """Replays the rule on what was measured and reported in the last day. Changes nothing, but takes a while
    on many nodes."""
    require(actor, Role.OPERATOR, "try policies out")
    check_rule(rule)
    policy = PurePolicy("dry run", rule, moves_per_hour=moves_per_hour)
    nodes, groups = list(Node.objects.all()), groups_now()
    found = replay(
        policy,
        _last_day(rule, nodes, groups),
        nodes_then(nodes),
        _with_inputs(rule, groups),
        latencies(),
        [replace(each, refusal=None, changing=False) for each in copied_now([policy], groups)],
        stream_ways(),
    )
    return {
        "since": _iso(found.from_s),
        "until": _iso(found.until_s),
        "acts": [_act_json(act, groups) for act in found.acts],
        "held": [{"code": code, "seconds": seconds} for code, seconds in sorted(found.held.items())],
    }


def _last_day(rule: Rule, nodes: Sequence[Node], groups: Mapping[str, DeployedGroup]) -> Past:
    redis_url, from_s = settings.FOGLINE.redis_url, (timezone.now() - DAY).timestamp()
    kept = samples_of([node.name for node in nodes], SAMPLES_MAX, redis_url)
    samples = {name: [each for each in of_node if each.at_s >= from_s] for name, of_node in kept.items()}
    if isinstance(rule, LatencyAbove):
        about = {
            id: each for id, each in groups.items() if rule.concerns(each.now.pipeline, each.now.elements)
        }
        late = latencies_of(about, redis_url)
        return Past(samples, {id: [x for x in of_group if x.at_s >= from_s] for id, of_group in late.items()})
    if isinstance(rule, FollowUser):
        return Past(samples, stays=stays_of(rule.pipeline, groups))
    return Past(samples)


def _with_inputs(rule: Rule, groups: Mapping[str, DeployedGroup]) -> list[GroupNow]:
    if not isinstance(rule, LatencyAbove | FollowUser):
        return [group.now for group in groups.values()]
    about = {each.deployment.pk for each in groups.values() if each.now.pipeline == rule.pipeline}
    inputs = inputs_of(about)
    return [replace(group.now, inputs=inputs.get(id, ())) for id, group in groups.items()]


def _act_json(act: ReplayedAct, groups: Mapping[str, DeployedGroup]) -> schemas.DryAct:
    group = groups.get(act.group or "")
    return {
        "at": datetime.fromtimestamp(act.at_s, UTC).isoformat(),
        "code": act.code,
        "pipeline": group.deployment.pipeline.name if group else act.pipeline or "",
        "element": group.element if group else None,
        "title": group.now.title if group else None,
        "origin": act.origin,
        "target": act.target,
        "site": act.site,
        "why": act.why,
    }


def _iso(at_s: float | None) -> str | None:
    return datetime.fromtimestamp(at_s, UTC).isoformat() if at_s is not None else None
