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
    """in an upgrade, whose steps are groups"""
    title: NotRequired[str]
    """the name of that group that users see"""
    regrouped: NotRequired[bool]
    """its elements ran in another group before, or will"""
    unconfirmed: NotRequired[bool]
    """it was removed, and its node did not confirm that it has ended"""


class Undelivered(TypedDict):
    """Rows that an element has put out and that wait for their delivery to a system outside."""

    element: str
    title: str
    rows: int
    estimated: bool
    """there are about so many"""
    why: str
    """why its connector fails; empty if it does not, or if that is not known"""


class UndeployPlan(TypedDict):
    undelivered: list[Undelivered] | None
    """the elements at which rows wait now; null if Kafka does not say so"""


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
    """in words; empty when it waits for nothing"""
    deadline: str | None
    """until when it waits for that; null if without end, or it waits for nothing"""
    reason: str
    """who ordered it, if no person did: policy NAME"""
    message: str
    code: str
    """of a failure: it has a page; empty if there is none"""
    faults: list[Fault]
    undelivered: list[Undelivered]
    """of elements that end: the rows that are not delivered, as control counted them last"""
    hurry: bool
    """an undeployment that does not wait for deliveries"""
    again: bool
    """after this undeployment the same version is deployed again"""
    next: str | None
    """the id of the deployment that was ordered when this undeployment had ended"""
    created_at: str
    ended_at: str | None


class StateReady(TypedDict):
    ready: bool
    """the pipeline stands at one boundary, so its state can be exported"""
    waits_for: list[str]
