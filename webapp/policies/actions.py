"""Creates, changes and removes policies. Control looks every few seconds and does what they say."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction

from pipeline_runtime.placement.policy.rules import Rule, Sites, rule_of
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.policies.checks import check_rule, refuse
from webapp.policies.models import Policy
from webapp.problems import Conflict, Missing

NAME = re.compile(r"[\w .-]{1,40}")
OPPOSITES = {"spread": ("pack",), "apart": ("pack",), "pack": ("spread", "apart")}
DOES = {"spread": "spreads the elements", "apart": "keeps the elements apart", "pack": "packs the elements"}
FIELDS = ("rule", "mode", "moves_per_hour", "enabled")


def create(actor: User, name: str, rule: Rule, **fields: Any) -> Policy:
    require(actor, Role.OPERATOR, "create policies")
    name = " ".join(name.split())
    policy = Policy(name=name, created_by=actor, rule=_stored(rule), **fields)
    _check_name(name)
    check_rule(rule)
    _check_opposite(policy)
    try:
        with transaction.atomic():
            policy.save()
            audit(actor, "policy.create", name, **{field: getattr(policy, field) for field in FIELDS})
            announce()
    except IntegrityError as error:
        raise Conflict(
            f'A policy "{name}" exists already.', safe="Nothing was changed.", next="Choose another name."
        ) from error
    return policy


@transaction.atomic
def change(actor: User, id: int, rule: Rule | None = None, **fields: Any) -> Policy:
    """Changes the given fields. A second call changes nothing. Earlier decisions do not count any more."""
    require(actor, Role.OPERATOR, "change policies")
    policy = _locked(id)
    if rule is not None:
        check_rule(rule)
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
    """Removes a policy. What it has ordered goes on, and its part of the log stays."""
    require(actor, Role.OPERATOR, "remove policies")
    policy = _locked(id)
    policy.delete()
    audit(actor, "policy.delete", policy.name)
    announce()


def _check_opposite(policy: Policy) -> None:
    """Refuses two policies of which one would move back what the other moves."""
    if not policy.enabled:
        return
    _check_other_sites(policy)
    opposites = OPPOSITES.get(policy.rule["kind"])
    if opposites is None:
        return
    other = Policy.objects.filter(enabled=True, rule__kind__in=opposites).exclude(pk=policy.pk).first()
    if other is not None:
        raise Conflict(
            f'"{other.name}" already {DOES[other.rule["kind"]]}, which is the opposite.',
            safe="Nothing was changed.",
            next=f"Switch {other.name} off first.",
        )


def _check_other_sites(policy: Policy) -> None:
    """Refuses a second policy that says what happens to the copies of a site that has gone."""
    rule = rule_of(policy.rule)
    if not isinstance(rule, Sites):
        return
    for other in Policy.objects.filter(enabled=True, rule__kind="sites").exclude(pk=policy.pk):
        about = other.rule["pipeline"]
        if not (rule.pipeline and about) or rule.pipeline == about:
            raise Conflict(
                f'"{other.name}" already says what happens to copies at sites of {about or "each pipeline"}.',
                safe="Nothing was changed.",
                next=f"Change that one, or switch {other.name} off first.",
            )


def _stored(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = rule.model_dump(mode="json")
    return found


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        refuse("name", "up to 40 letters, digits, spaces, dots, hyphens and underscores")


def _locked(id: int) -> Policy:
    policy = Policy.objects.select_for_update().filter(pk=id).first()
    if policy is None:
        raise Missing(f"There is no policy {id}.", next="See the list of policies.")
    return policy
