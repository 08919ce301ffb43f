"""Making, changing and removing policies. Control, which looks each few seconds, does what they say."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction

from pipeline_runtime.placement.policy import MARGIN
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.policies.models import Policy
from webapp.problems import Conflict, Fault, Invalid, Missing

NAME = re.compile(r"[\w .-]{1,40}")
FOR_S_MAX = 1800
"""Control looks an hour back."""
CPU_FOR_S_MIN = 30
"""There is a sample each 30 s."""
FIELDS = ("kind", "threshold", "for_s", "mode", "moves_per_hour", "enabled")


def create(actor: User, name: str, **fields: Any) -> Policy:
    require(actor, Role.OPERATOR, "make policies")
    name = " ".join(name.split())
    policy = Policy(name=name, created_by=actor, **fields)
    _check(policy)
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
def change(actor: User, id: int, **fields: Any) -> Policy:
    """Change the given fields. Done twice, it is done once; what was decided before counts no more."""
    require(actor, Role.OPERATOR, "change policies")
    policy = _locked(id)
    changed = {name: value for name, value in fields.items() if getattr(policy, name) != value}
    if not changed:
        return policy
    before = {name: getattr(policy, name) for name in changed}
    for name, value in changed.items():
        setattr(policy, name, value)
    _check(policy)
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


def faults_of(kind: str, threshold: float, for_s: int, moves_per_hour: int) -> list[Fault]:
    """What is wrong with the figures of a policy."""
    found: list[Fault] = []

    def fault(path: str, message: str) -> None:
        found.append({"element": None, "path": path, "message": message, "code": "range"})

    least, most = (2 * MARGIN, 0.99) if kind == Policy.Kind.CPU else (0.01, 0.9)
    if not least <= threshold <= most:
        fault("threshold", f"between {least:.2f} and {most:.2f}, which is {least:.0%} and {most:.0%}")
    least_s = CPU_FOR_S_MIN if kind == Policy.Kind.CPU else 0
    if not least_s <= for_s <= FOR_S_MAX:
        fault("for_s", f"between {least_s} and {FOR_S_MAX} s")
    if not 1 <= moves_per_hour <= 100:
        fault("moves_per_hour", "between 1 and 100")
    return found


def _check(policy: Policy) -> None:
    faults = faults_of(policy.kind, policy.threshold, policy.for_s, policy.moves_per_hour)
    if not NAME.fullmatch(policy.name):
        allowed = "up to 40 letters, digits, spaces, dots, hyphens and underscores"
        faults.insert(0, {"element": None, "path": "name", "message": allowed, "code": "invalid"})
    refuse(faults)


def refuse(faults: list[Fault]) -> None:
    """Raises Invalid, if there are any."""
    if faults:
        said = "; ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
        raise Invalid(f"That is no policy: {said}.", safe="Nothing was changed.", faults=faults)


def _locked(id: int) -> Policy:
    policy = Policy.objects.select_for_update().filter(pk=id).first()
    if policy is None:
        raise Missing(f"There is no policy {id}.")
    return policy
