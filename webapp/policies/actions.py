"""Making, changing and removing policies. Control, which looks each few seconds, does what they say."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from django.db import IntegrityError, transaction

from pipeline_runtime.placement.policy.rules import (
    Apart,
    FollowUser,
    LatencyAbove,
    Maintenance,
    Rule,
    Sites,
    rule_of,
)
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.pipelines.shape import element_of
from webapp.policies.models import Policy
from webapp.problems import Conflict, Fault, Invalid, Missing

NAME = re.compile(r"[\w .-]{1,40}")
OPPOSITES = {"spread": ("pack",), "apart": ("pack",), "pack": ("spread", "apart")}
DOES = {"spread": "spreads", "apart": "keeps apart", "pack": "packs"}
FIELDS = ("rule", "mode", "moves_per_hour", "enabled")


def create(actor: User, name: str, rule: Rule, **fields: Any) -> Policy:
    require(actor, Role.OPERATOR, "make policies")
    name = " ".join(name.split())
    policy = Policy(name=name, created_by=actor, rule=_stored(rule), **fields)
    _check_name(name)
    _check_rule(rule)
    _check_opposite(policy)
    try:
        with transaction.atomic():
            policy.save()
            audit(actor, "policy.create", name, **{field: getattr(policy, field) for field in FIELDS})
            announce()
    except IntegrityError as error:
        raise Conflict(
            f'There is a policy "{name}" already.', safe="Nothing was changed.", next="Choose another name."
        ) from error
    return policy


@transaction.atomic
def change(actor: User, id: int, rule: Rule | None = None, **fields: Any) -> Policy:
    """Change the given fields. Done twice, it is done once; what was decided before counts no more."""
    require(actor, Role.OPERATOR, "change policies")
    policy = _locked(id)
    if rule is not None:
        _check_rule(rule)
        fields["rule"] = _stored(rule)
    changed = {name: value for name, value in fields.items() if getattr(policy, name) != value}
    if not changed:
        return policy
    before = {name: getattr(policy, name) for name in changed}
    for name, value in changed.items():
        setattr(policy, name, value)
    _check_opposite(policy)
    policy.standing = []
    policy.save(update_fields=[*changed, "standing"])
    audit(actor, "policy.change", policy.name, before=before, **changed)
    announce()
    return policy


@transaction.atomic
def remove(actor: User, id: int) -> None:
    """What it has ordered goes on; its part of the log stays."""
    require(actor, Role.OPERATOR, "remove policies")
    policy = _locked(id)
    policy.delete()
    audit(actor, "policy.delete", policy.name)
    announce()


def _check_opposite(policy: Policy) -> None:
    """What one of the two moves, the other would move back."""
    if not policy.enabled:
        return
    _check_other_sites(policy)
    opposites = OPPOSITES.get(policy.rule["kind"])
    if opposites is None:
        return
    other = Policy.objects.filter(enabled=True, rule__kind__in=opposites).exclude(pk=policy.pk).first()
    if other is not None:
        raise Conflict(
            f'"{other.name}" {DOES[other.rule["kind"]]} the elements already, which is the opposite.',
            safe="Nothing was changed.",
            next=f"Switch {other.name} off first.",
        )


def _check_other_sites(policy: Policy) -> None:
    """What becomes of copies whose site has gone is said once."""
    rule = rule_of(policy.rule)
    if not isinstance(rule, Sites):
        return
    for other in Policy.objects.filter(enabled=True, rule__kind="sites").exclude(pk=policy.pk):
        about = other.rule["pipeline"]
        if not (rule.pipeline and about) or rule.pipeline == about:
            raise Conflict(
                f'"{other.name}" says already what becomes of copies at sites of {about or "each pipeline"}.',
                safe="Nothing was changed.",
                next=f"Change that one, or switch {other.name} off first.",
            )


def _check_rule(rule: Rule) -> None:
    """Whether what it names is there."""
    # One of sites may be about each pipeline.
    if isinstance(rule, LatencyAbove | FollowUser | Apart) or (isinstance(rule, Sites) and rule.pipeline):
        pipeline = Pipeline.objects.filter(name=rule.pipeline).first()
        if pipeline is None:
            _refuse(f"rule.{rule.kind}.pipeline", f"there is no pipeline {rule.pipeline}")
        element = rule.element if isinstance(rule, LatencyAbove | FollowUser) else ""
        if element and element_of(pipeline.draft, element) is None:
            _refuse(f"rule.{rule.kind}.element", f"the draft of {rule.pipeline} has no element {element}")
    if not isinstance(rule, Maintenance):
        return
    nodes = list(Node.objects.all())
    known = {node.name for node in nodes} if rule.of == "node" else {node.place for node in nodes}
    if rule.name not in known:
        _refuse("rule.maintenance.name", f"there is no {rule.of} {rule.name}")


def _refuse(path: str, message: str) -> NoReturn:
    fault: Fault = {"element": None, "path": path, "message": message, "code": "invalid"}
    raise Invalid(f"That is no policy: {path}: {message}.", safe="Nothing was changed.", faults=[fault])


def _stored(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = rule.model_dump(mode="json")
    return found


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        _refuse("name", "up to 40 letters, digits, spaces, dots, hyphens and underscores")


def _locked(id: int) -> Policy:
    policy = Policy.objects.select_for_update().filter(pk=id).first()
    if policy is None:
        raise Missing(f"There is no policy {id}.")
    return policy
