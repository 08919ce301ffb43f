"""Reading policies, their log, and what they would have done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

from pipeline_runtime.placement.policy.replay import replay
from pipeline_runtime.placement.policy.rules import (
    BatteryBelow,
    CpuAbove,
    Pack,
    Policy as PurePolicy,
    Rule,
    Spread,
    rule_of,
)
from pipeline_runtime.wire.keys import NODE_SAMPLES_MAX
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.nodes.models import Node
from webapp.policies import schemas
from webapp.policies.facts import groups_now, nodes_now, samples_of
from webapp.policies.models import Decision, Policy
from webapp.problems import Invalid, Missing

DAY = timedelta(days=1)
REPLAYED = (CpuAbove, BatteryBelow, Spread, Pack)
"""Kinds that decide by the samples of which a day is kept."""
ACTS = ("move", "copy", "take-out", "restore")
"""What a policy advises, or does."""


def policies() -> list[schemas.Policy]:
    return [policy_json(row) for row in Policy.objects.select_related("created_by")]


def one_policy(id: int) -> schemas.Policy:
    row = Policy.objects.select_related("created_by").filter(pk=id).first()
    if row is None:
        raise Missing(f"There is no policy {id}.")
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
    """(policy, what it advises) of those that are to advise; a person may do it with one click. And of each,
    what of a site's copies it cannot do by itself."""
    return [
        (row.name, each)
        for row in Policy.objects.filter(enabled=True)
        for each in row.standing
        if (row.mode == Policy.Mode.ADVICE and each["code"] in ACTS)
        or (each.get("site") and each["code"] == "refused")
    ]


def log(limit: int, policy: str | None = None) -> list[schemas.Decision]:
    """The newest first."""
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
    """With what was measured in the last day. Changes nothing, but takes a while on many nodes."""
    require(actor, Role.OPERATOR, "try policies out")
    if not isinstance(rule, REPLAYED):
        raise Invalid(
            f"A policy of the kind {rule.kind} is not tried on the last day: it does not decide by what was"
            " measured then.",
            safe="Nothing was changed.",
        )
    policy = PurePolicy("dry run", rule, moves_per_hour=moves_per_hour)
    nodes = list(Node.objects.all())
    from_s = (timezone.now() - DAY).timestamp()
    kept = samples_of([node.name for node in nodes], NODE_SAMPLES_MAX, settings.FOGLINE.redis_url)
    history = {
        name: [sample for sample in samples if sample.at_s >= from_s] for name, samples in kept.items()
    }
    groups = groups_now()
    found = replay(policy, history, nodes_now(nodes, {}), [group.now for group in groups.values()])
    return {
        "since": _iso(found.from_s),
        "until": _iso(found.until_s),
        "moves": [
            {
                "at": datetime.fromtimestamp(move.at_s, UTC).isoformat(),
                "pipeline": groups[move.group].deployment.pipeline.name,
                "element": groups[move.group].element,
                "title": groups[move.group].now.title,
                "origin": move.origin,
                "target": move.target,
                "why": move.why,
            }
            for move in found.moves
        ],
        "held": [{"code": code, "seconds": seconds} for code, seconds in sorted(found.held.items())],
    }


def _iso(at_s: float | None) -> str | None:
    return datetime.fromtimestamp(at_s, UTC).isoformat() if at_s is not None else None
