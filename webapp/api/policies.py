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
    """Its fields that have a value, each as it was read: a rule stays one."""
    return {name: value for name, value in body if value is not None}


@router.get("/policies", response=list[Policy])
def policies(request: HttpRequest) -> list[Policy]:
    """With what each says now of nodes and elements."""
    return selectors.policies()


@router.post("/policies", response={201: Policy})
def create(request: HttpRequest, body: PolicyIn) -> Status[Policy]:
    """`rule`: when it acts, by its `kind`. `mode` advice: it only says what to move."""
    return Status(201, selectors.policy_json(actions.create(actor(request), **_given(body))))


@router.get("/policies/log", response=list[Decision])
def log(
    request: HttpRequest, limit: int = Query(50, ge=1, le=1000), policy: str | None = None
) -> list[Decision]:
    """What was decided, and why; newest first. Only what is another verdict than before."""
    return selectors.log(limit, policy)


@router.post("/policies/dry-run", response=DryRun)
def dry_run(request: HttpRequest, body: DryRunIn) -> DryRun:
    """What such a policy would have done in the last day, with the elements where they are now. Changes
    nothing."""
    return selectors.dry_run(actor(request), body.rule, body.moves_per_hour)


@router.get("/policies/{int:id}", response=Policy)
def policy(request: HttpRequest, id: int) -> Policy:
    return selectors.one_policy(id)


@router.patch("/policies/{int:id}", response=Policy)
def change(request: HttpRequest, id: int, body: PolicyChange) -> Policy:
    """Its name stays: moves and the log are told by it."""
    return selectors.policy_json(actions.change(actor(request), id, **_given(body)))


@router.delete("/policies/{int:id}", response={204: None})
def remove(request: HttpRequest, id: int) -> Status[None]:
    """What it has ordered goes on."""
    actions.remove(actor(request), id)
    return Status(204, None)
