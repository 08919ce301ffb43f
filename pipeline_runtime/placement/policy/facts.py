"""What policies decide by, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline_runtime.placement.constraints import percent

Code = Literal[
    "unknown",  # nothing is heard of it
    "calm",  # there is nothing to do
    "not-yet",  # beyond it, but not for long enough
    "moving",  # something is to leave it first
    "draining",  # all of it is leaving already
    "empty",  # it runs nothing
    "refused",  # the group cannot move now
    "resting",  # the group was moved a short while ago
    "no-target",  # no node can take the group
    "budget",  # it would be moved, but for the budget
    "move",  # it is to be moved
    "waits",  # copies wait for their site
    "copy",  # a pipeline is to get its copy at a site
    "take-out",  # a pipeline's copies at a site are to be taken out
    "restore",  # the copy is to go on elsewhere
]

HOUR_S = 3600.0
GAP_S = 120.0
"""Between two samples, four times as much as usual: nobody knows what was between."""


@dataclass(frozen=True)
class Sample:
    """Of one node. None: it does not say."""

    at_s: float
    cpu_ratio: float | None = None
    battery_ratio: float | None = None
    on_battery: bool | None = None

    @property
    def charge(self) -> float | None:
        """Of its battery. One that is being charged is as good as full."""
        return 1.0 if self.battery_ratio is not None and self.on_battery is False else self.battery_ratio


@dataclass(frozen=True)
class Latency:
    """Of one group. None: it puts nothing out."""

    at_s: float
    ms: float | None


@dataclass(frozen=True)
class UserAt:
    """Where the user of an element is, as was told."""

    element: str
    site: str
    since_s: float


@dataclass(frozen=True)
class NodeNow:
    name: str
    samples: Sequence[Sample]  # oldest first
    cores: int = 0  # 0: not known
    machine: str = ""  # nodes of one machine share its CPU; empty: none does
    refusal: str | None = None  # why it takes nothing new, said of it: "is cordoned"
    draining: bool = False
    site: str = ""
    has_site: bool = False  # False: nobody has said where it stands, and it is a site of its own
    up: bool = True
    seen_s: float | None = None  # when it was heard last; None: never


@dataclass(frozen=True)
class GroupNow:
    id: str
    title: str  # what people call it
    node: str
    rows_per_s: float
    state_bytes: int = 0
    refusal: str | None = None  # why it cannot move now
    pipeline: str = ""
    elements: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # the groups that it reads
    latencies: Sequence[Latency] = ()  # oldest first; empty: nobody asked for them
    apart: frozenset[str] = frozenset()  # the groups that it shares no node with
    users: tuple[UserAt, ...] = ()  # of its elements; empty: nobody asked, or nobody told
    pinned: bool = False  # to a node or a site, by the document
    latency_ms_target: int | None = None  # it waits so long by itself, for more rows
    refuge: str | None = None  # where it would go on if it were restored now; None: nowhere


@dataclass(frozen=True)
class Copied:
    """A pipeline that runs and has copies at sites."""

    pipeline: str
    at: Mapping[str, tuple[str, ...]]  # site -> the groups of its copies there
    only: frozenset[str] = frozenset()  # sites at which something has its only copy
    lacks: frozenset[str] = frozenset()  # of the other sites that nodes say, those where something has none
    refusal: str | None = None  # why its copies cannot be changed now
    changing: bool = False  # it is being upgraded


@dataclass(frozen=True)
class CopyChange:
    """By a policy, in the last hour."""

    pipeline: str
    site: str
    policy: str
    at_s: float


@dataclass(frozen=True)
class Move:
    """One that was ordered, by a policy or by people."""

    group: str
    origin: str
    target: str
    at_s: float
    ended_s: float | None = None  # None: under way
    done: bool = False
    policy: str | None = None


What = tuple[str, str | None, str, str | None, str | None, str | None]


@dataclass(frozen=True)
class Verdict:
    """`group` None: of the node as a whole. `target`: only of "move", "restore" and "budget". Of a site and a
    pipeline there is no node."""

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
        """What it says but for the figures: while that is the same, nothing new was decided."""
        return (self.node, self.group, self.code, self.target, self.site, self.pipeline)


def crowded(cpu: float, most: float) -> str | None:
    """Why a node whose CPU would come to that takes nothing, said of it; None: it has room."""
    return f"would come to {percent(cpu)} of its CPU, more than {percent(most)}" if cpu > most else None
