"""Responses about operations."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from webapp.problems import Fault


class Step(TypedDict):
    name: str
    state: str
    at: str | None
    change: NotRequired[Literal["added", "changed", "removed"]]
    """in an upgrade, whose steps are groups: what happens to the group"""
    title: NotRequired[str]
    """the group's name that users see"""
    regrouped: NotRequired[bool]
    """whether the elements of the group run in another group before or after the upgrade"""
    unconfirmed: NotRequired[bool]
    """whether the group was removed, and its node did not confirm that it has ended"""


class Undelivered(TypedDict):
    """Rows that wait: for the connector to deliver them, or for the element itself to read them."""

    element: str
    title: str
    rows: int | None
    """null if Kafka did not say how many"""
    estimated: bool
    """whether the number of rows is an estimate"""
    why: str
    """why the connector fails; empty if it works, or if the reason is not known"""
    unread: bool
    """whether the element has not read these rows"""


class UndeployPlan(TypedDict):
    undelivered: list[Undelivered] | None
    """the elements whose rows wait now; null if Kafka does not answer"""


class Operation(TypedDict):
    id: str
    kind: Literal["deploy", "undeploy", "upgrade"]
    pipeline: str
    deployment: str
    status: Literal["pending", "running", "done", "failed"]
    steps: list[Step]
    phase: str
    phase_since: str | None
    waits_for: str
    """what the operation waits for, as people read it; empty if it waits for nothing"""
    deadline: str | None
    """until when the operation waits; null if it waits without a limit, or waits for nothing"""
    reason: str
    """the policy that ordered the operation: policy NAME; empty if a person ordered it"""
    message: str
    code: str
    """the error code of a failed operation, which has a page in docs/errors; empty if there is none"""
    faults: list[Fault]
    undelivered: list[Undelivered]
    """the rows that wait at the elements that end, as control last counted them"""
    hurry: bool
    """whether somebody does not want to wait for deliveries"""
    again: bool
    """whether Fogline deploys the same version again after this undeployment"""
    next: str | None
    """the id of the deployment that was ordered after this undeployment; null if there is none"""
    created_at: str
    ended_at: str | None


class StateReady(TypedDict):
    ready: bool
    """whether all groups of the pipeline stand at one boundary, so that a user can export the state"""
    waits_for: list[str]
