"""Responses about what is deployed, or would be."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

ElementStatus = Literal[
    "running",
    "paused",
    "deploying",
    "starting",
    "moving",
    "restoring",
    "lagging",
    "stalled",
    "failed",
    "stopped",
    "silent",
    "unheard",
    "ended",
    "view",
    "draft",
]

ElementAction = Literal[
    "migrate", "restore", "pause", "resume", "checkpoint", "keep_standby", "drop_standby", "rewind"
]


class DeployChange(TypedDict):
    """What a deployment would do with an element."""

    element: str
    title: NotRequired[str]
    """the name that users see, in a pipeline that runs; a removed element is in no document any more"""
    change: Literal["unchanged", "retuned", "upgraded", "restart", "incompatible", "added", "removed"]
    """"restart" means that it cannot keep its state, but can begin without it"""
    reason: NotRequired[str | None]
    """for one that runs: what changed, or what prevents the change"""
    path: NotRequired[str | None]
    """of the parameter that prevents the change, below its element"""
    loses: NotRequired[str | None]
    """with "restart" and "removed": what of its state is lost"""
    instead: NotRequired[str | None]
    """another id that would do, if the element has that of one that was removed while the pipeline ran"""
    view: NotRequired[bool]
    """for a change of what runs: no node runs it, so nothing of it is kept or lost"""
    node: NotRequired[str | None]
    """where it goes, with "added" and if it moves to another node with others; null if only the dashboard
    shows it, or no node can take it"""
    why: NotRequired[str | None]
    problem: NotRequired[str | None]
    """why no node can take it"""
    warning: NotRequired[str | None]
    """for a pinned element: what speaks against that node"""
    waits: NotRequired[bool]
    """that may pass by itself, and a deployment waits for it"""


class DeployPlan(TypedDict):
    changes: list[DeployChange]
    repeats: bool
    """an upgrade that failed is tried again, whatever changes"""


class CheckpointNote(TypedDict):
    seq: int
    at: str | None
    bytes: int | None
    where: list[str]


class Checkpoint(CheckpointNote):
    epoch: int | None
    bytes_new: int | None
    node: str | None


class Checkpoints(TypedDict):
    checkpoints: list[Checkpoint]
