"""Responses about policies."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from pipeline_runtime.placement.policy.facts import Code
from pipeline_runtime.placement.policy.rules import Mode, Rule
from webapp.json_types import Number


class Standing(TypedDict):
    """What a policy says about a node, or about an element there, and since when."""

    node: str
    """empty when it is about a pipeline's copies at a site"""
    code: Code
    why: str
    """as it was when the policy began to say so"""
    since: str
    site: NotRequired[str]
    """for a policy of sites"""
    group: str | None
    """null when it is about the node or the site as a whole; so are the next three"""
    pipeline: str | None
    """always set for a policy of sites"""
    element: str | None
    title: str | None
    target: str | None
    """where it would go, if it has to move"""


class Policy(TypedDict):
    id: int
    name: str
    rule: Rule
    mode: Mode
    moves_per_hour: int
    enabled: bool
    standing: list[Standing]
    """what it says now; empty while it is not enabled"""
    created_by: str | None
    created_at: str


class UserPlaceNote(TypedDict):
    """Where the user of an element is."""

    site: str
    since: str
    """when the user came there"""


class UserPlace(UserPlaceNote):
    told_at: str
    """when it was last reported, to within some seconds"""
    told_by: str


class Decision(TypedDict):
    id: int
    at: str
    policy: str
    node: str
    """empty when it is about a pipeline's copies at a site"""
    site: str | None
    pipeline: str | None
    element: str | None
    title: str | None
    code: Code
    target: str | None
    why: str
    handover: str | None
    """id of the move that was ordered"""
    operation: str | None
    """id of the upgrade that was ordered"""


class DryAct(TypedDict):
    """A move, or a change to a pipeline's copies at a site."""

    at: str
    code: Code
    pipeline: str
    element: str | None
    """null for all its copies at the site, as is the next one; or for a copy that is not there now"""
    title: str | None
    origin: str
    """empty for all its copies at the site"""
    target: str | None
    site: str | None
    """for a policy of sites"""
    why: str


class Held(TypedDict):
    code: Code
    seconds: Number


class DryRun(TypedDict):
    """What a policy would have done with what was measured in the last day."""

    since: str | None
    """of the first sample; null if there is none yet"""
    until: str | None
    acts: list[DryAct]
    held: list[Held]
    """for how long it would have acted and could not, by reason"""
