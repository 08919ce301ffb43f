"""Responses about policies."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from pipeline_runtime.placement.policy.facts import Code
from pipeline_runtime.placement.policy.rules import Mode, Rule
from webapp.json_types import Number


class Standing(TypedDict):
    """The advice of a policy about a node or an element, and since when it stands."""

    node: str
    """the node; empty if the advice is about a pipeline's copies at a site"""
    code: Code
    why: str
    """the reason at the time when the advice began"""
    since: str
    site: NotRequired[str]
    """the site, for a policy of sites"""
    group: str | None
    """the group; null if the advice is about the node or the site as a whole"""
    pipeline: str | None
    """the pipeline; null if the advice is about the node as a whole; a policy of sites always names one"""
    element: str | None
    title: str | None
    target: str | None
    """the node to which the group would move; null if it does not have to move"""


class Policy(TypedDict):
    id: int
    name: str
    rule: Rule
    mode: Mode
    moves_per_hour: int
    enabled: bool
    standing: list[Standing]
    """the present advice; empty while the policy is not enabled"""
    created_by: str | None
    created_at: str


class UserPlaceNote(TypedDict):
    """The site where the user of an element is."""

    site: str
    since: str
    """when the user came there"""


class UserPlace(UserPlaceNote):
    told_at: str
    """when a program last reported the site, to within some seconds"""
    told_by: str


class Decision(TypedDict):
    id: int
    at: str
    policy: str
    node: str
    """the node; empty if the act is about a pipeline's copies at a site"""
    site: str | None
    pipeline: str | None
    element: str | None
    title: str | None
    code: Code
    target: str | None
    why: str
    handover: str | None
    """the id of the move that the policy ordered"""
    operation: str | None
    """the id of the upgrade that the policy ordered"""


class DryAct(TypedDict):
    """A move, or a change to a pipeline's copies at a site."""

    at: str
    code: Code
    pipeline: str
    element: str | None
    """the element; null for all copies at the site, and for a copy that does not exist now"""
    title: str | None
    origin: str
    """the node that the element would leave; empty for all copies at the site"""
    target: str | None
    site: str | None
    """the site, for a policy of sites"""
    why: str


class Held(TypedDict):
    code: Code
    seconds: Number


class DryRun(TypedDict):
    """The acts that a policy would have ordered, by the measurements of the last day."""

    since: str | None
    """the time of the first measurement; null if there is none yet"""
    until: str | None
    acts: list[DryAct]
    held: list[Held]
    """for each reason, how long the policy could not act although it wanted to"""
