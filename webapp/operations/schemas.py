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
    """of an upgrade, whose steps are groups"""
    title: NotRequired[str]
    """what people call that group"""
    regrouped: NotRequired[bool]
    """its elements ran in another group, or run in another one then"""
    unconfirmed: NotRequired[bool]
    """it was removed, and its node did not say that it has ended"""


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
    """in words; empty: for nothing"""
    deadline: str | None
    """until when it waits for that; null: there is no end to it, or nothing is waited for"""
    reason: str
    """who ordered it, where no person did: policy NAME"""
    message: str
    faults: list[Fault]
    created_at: str
    ended_at: str | None
