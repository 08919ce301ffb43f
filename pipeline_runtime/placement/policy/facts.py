"""The facts that policies decide by, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline_runtime.placement.constraints import percent

Code = Literal[
    "unknown",  # the node is not heard
    "calm",  # there is nothing to do
    "not-yet",  # the limit is passed, but not for long enough
    "moving",  # another group has to leave first
    "draining",  # all groups are leaving already
    "empty",  # it runs nothing
    "refused",  # the group cannot move now
    "resting",  # the group was moved a short while ago
    "no-target",  # no node can take the group
    "budget",  # only the budget prevents the move
    "move",  # the group has to move
    "waits",  # copies wait for their site
    "copy",  # a pipeline gets its copy at a site
    "take-out",  # a pipeline's copies at a site are taken out
    "restore",  # the copy goes on elsewhere
]

HOUR_S = 3600.0
GAP_S = 120.0
"""The largest gap between two samples, four times the usual one. In a larger gap nobody knows what
happened."""


@dataclass(frozen=True)
class Sample:
    """A sample of one node. A value is None when the node does not report it."""

    at_s: float
    cpu_ratio: float | None = None
    battery_ratio: float | None = None
    on_battery: bool | None = None

    @property
    def charge(self) -> float | None:
        """Returns the charge of its battery. A battery that is being charged counts as full."""
        return 1.0 if self.battery_ratio is not None and self.on_battery is False else self.battery_ratio


@dataclass(frozen=True)
class Latency:
    """A latency of one group. It is None when the group has no output."""

    at_s: float
    ms: float | None


@dataclass(frozen=True)
class UserAt:
    """Where an element's user is, as somebody reported it."""

    element: str
    site: str
    since_s: float


@dataclass(frozen=True)
class NodeNow:
    name: str
    samples: Sequence[Sample]  # oldest first
    cores: int = 0  # 0 when it is not known
    machine: str = ""  # nodes of one machine share its CPU; empty when no node shares it
    refusal: str | None = None  # why it takes nothing new: "is cordoned"
    draining: bool = False
    site: str = ""  # its own name when no user gave it a site
    up: bool = True
    seen_s: float | None = None  # when it was heard last; None if never


@dataclass(frozen=True)
class GroupNow:
    id: str
    title: str  # the name that users see
    node: str
    rows_per_s: float
    state_bytes: int = 0
    refusal: str | None = None  # why it cannot move now
    pipeline: str = ""
    elements: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # the groups that it reads
    latencies: Sequence[Latency] = ()  # oldest first; empty when no policy needs them
    apart: frozenset[str] = frozenset()  # the groups that it must not share a node with
    users: tuple[UserAt, ...] = ()  # of its elements; empty when no policy needs them or nobody reported any
    pinned: bool = False  # to a node or a site, by the document
    latency_ms_target: int | None = None  # the group waits so long by itself for more rows
    refuge: str | None = None  # where it would go on if it were restored now; None if nowhere


@dataclass(frozen=True)
class Copied:
    """A running pipeline that has copies at sites."""

    pipeline: str
    at: Mapping[str, tuple[str, ...]]  # site -> the groups of its copies there
    only: frozenset[str] = frozenset()  # sites at which some part has its only copy
    lacks: frozenset[str] = frozenset()  # the other sites with nodes, at which some part has no copy
    refusal: str | None = None  # why its copies cannot be changed now
    changing: bool = False  # it is being upgraded


@dataclass(frozen=True)
class CopyChange:
    """A change by a policy in the last hour."""

    pipeline: str
    site: str
    policy: str
    at_s: float


@dataclass(frozen=True)
class Move:
    """A move that a policy or a person ordered."""

    group: str
    origin: str
    target: str
    at_s: float
    ended_s: float | None = None  # None while it is running
    done: bool = False
    policy: str | None = None


What = tuple[str, str | None, str, str | None, str | None, str | None]


@dataclass(frozen=True)
class Verdict:
    """A verdict is on the node as a whole when `group` is None. Only "move", "restore" and "budget" have a
    `target`. A verdict on a site and a pipeline has no node."""

    policy: str
    node: str
    code: Code
    why: str  # a sentence
    group: str | None = None
    target: str | None = None
    site: str | None = None
    pipeline: str | None = None

    @property
    def what(self) -> What:
        """Returns the content without the figures. While it stays the same, nothing new was decided."""
        return (self.node, self.group, self.code, self.target, self.site, self.pipeline)


def crowded(cpu: float, most: float) -> str | None:
    """Returns why a node whose CPU would reach this takes nothing, or None if it has room."""
    return f"would reach {percent(cpu)} of its CPU, more than {percent(most)}" if cpu > most else None
