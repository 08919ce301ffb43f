from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from pipeline_runtime.placement.policy.rules import Mode, Rule
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.policies import actions, selectors
from webapp.policies.schemas import Decision, DryRun, Policy

router = Router(tags=["policies"])


class DryRunIn(Body):
    rule: Rule
    moves_per_hour: int = Field(6, ge=1, le=100)


class PolicyIn(DryRunIn):
    name: str = Field(min_length=1, max_length=40)
    mode: Mode = "advice"
    enabled: bool = True


class PolicyChange(Body):
    rule: Rule | None = None
    moves_per_hour: int | None = Field(None, ge=1, le=100)
    mode: Mode | None = None
    enabled: bool | None = None


def _given(body: Body) -> dict[str, Any]:
    """Returns the fields that have a value, each as it was read, so that a rule stays a rule."""
    return {name: value for name, value in body if value is not None}


@router.get("/policies", response=list[Policy])
def policies(request: HttpRequest) -> list[Policy]:
    """Lists the policies, with what each says now about nodes and elements."""
    return selectors.policies()


@router.post("/policies", response={201: Policy})
def create(request: HttpRequest, body: PolicyIn) -> Status[Policy]:
    """Creates a policy. `rule` says by its `kind` when the policy acts. With `mode` advice, it only says what
    to move."""
    return Status(201, selectors.policy_json(actions.create(actor(request), **_given(body))))


@router.get("/policies/log", response=list[Decision])
def log(
    request: HttpRequest, limit: int = Query(50, ge=1, le=1000), policy: str | None = None
) -> list[Decision]:
    """Lists what was decided and why, newest first. A decision is listed only when its verdict changed."""
    return selectors.log(limit, policy)


@router.post("/policies/dry-run", response=DryRun)
def dry_run(request: HttpRequest, body: DryRunIn) -> DryRun:
    """Says what such a policy would have done in the last day, with the elements where they are now. Changes
    nothing."""
    return selectors.dry_run(actor(request), body.rule, body.moves_per_hour)


@router.get("/policies/{int:id}", response=Policy)
def policy(request: HttpRequest, id: int) -> Policy:
    """Returns one policy, with what it says now about nodes and elements."""
    return selectors.one_policy(id)


@router.patch("/policies/{int:id}", response=Policy)
def change(request: HttpRequest, id: int, body: PolicyChange) -> Policy:
    """Changes a policy. Its name stays, since moves and the log refer to it."""
    return selectors.policy_json(actions.change(actor(request), id, **_given(body)))


@router.delete("/policies/{int:id}", response={204: None})
def remove(request: HttpRequest, id: int) -> Status[None]:
    """Removes a policy. Operations that it has ordered go on."""
    actions.remove(actor(request), id)
    return Status(204, None)
