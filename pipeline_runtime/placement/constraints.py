"""The constraints that a node has to meet to get a group, and what is taken of nodes and lines while groups
are placed. Pure.

Each constraint is a function that returns why a node cannot take a group, as a sentence about the node, or
None if it can. CPU is no constraint: a node that is too busy is slow, but a node without memory ends what it
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline_runtime.placement.links import Latencies
from pipeline_runtime.placement.move_cost import Rates
from pipeline_runtime.placement.needs import NOTHING, Need

Closed = Literal["cordoned", "leaving", "in maintenance"]
"""Why a node takes nothing new: a person, its own shutdown or a policy said so."""
Way = tuple[str, str]
"""From one site to another."""
Flows = Mapping[tuple[str, str], float]
"""(group, another group that reads it) -> bytes/s, as measured. Unknown ones are left out."""


@dataclass(frozen=True)
class Candidate:
    """A registered node, with the facts that count for a placement."""

    name: str
    up: bool
    ready: bool  # its Spark session is up
    closed: Closed | None
    elements: int = 0  # elements that run there or will run there
    place: str = ""  # its site; a node without one is a place of its own
    cpu_ratio: float = 0.0  # 0..1, over all its cores
    cores: int = 0  # 0 when it is not known
    memory_free_bytes: float | None = None  # None when it is not known
    machine: str = ""  # nodes of one machine share its CPU and memory; empty when no node shares them
    coming: Need = NOTHING  # the needs of what will run there and does not show in the node's reports yet

    @property
    def refusal(self) -> str | None:
        """Returns why the node takes nothing new now, or None if it does."""
        if not self.up:
            return "does not answer"
        if self.closed is not None:
            return f"is {self.closed}"
        return None if self.ready else "is still starting"

    @property
    def is_free(self) -> bool:
        return self.refusal is None


@dataclass(frozen=True)
class GroupToPlace:
    group: str
    elements: int
    pin: str | None = None  # by the document, or by the person who deploys
    pinned_by: str = "it was pinned there"  # the reason for the pin, for the record
    site: str | None = None  # it runs on a node of that site
    reads: frozenset[str] = frozenset()  # the groups whose streams it reads
    apart: frozenset[str] = frozenset()  # the groups that it must not share a node with
    without: frozenset[str] = frozenset()  # nodes that it has to leave, or has tried in vain
    need: Need = NOTHING
    machine: str = ""  # the machine it runs on, which already gives what it needs; empty when it runs nowhere


@dataclass(frozen=True)
class Ground:
    """What is known about lines and streams."""

    latencies: Latencies = field(default_factory=dict)  # for the rows of streams
    bytes_per_s: Rates = field(default_factory=dict)  # what lines carry at most
    flows: Flows = field(default_factory=dict)  # between the groups of the pipeline
    carried: Mapping[Way, float] = field(default_factory=dict)  # bytes/s of other pipelines
    names: Mapping[str, str] = field(default_factory=dict)  # group -> the name that users see

    def by_broker(self, sites: Iterable[str]) -> bool:
        """Returns whether the latencies between the sites lead through the Kafka broker. Then there is one
        within a site, too."""
        return all(self.latencies.get((site, site), 0.0) > 0 for site in sites)


UNKNOWN = Ground()


class Room:
    """What is left of nodes and lines while one group after another is placed."""

    def __init__(self, nodes: Iterable[Candidate], ground: Ground, runs_on: Mapping[str, str]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.ground = ground
        self.runs_on = dict(runs_on)
        self.elements = {name: node.elements for name, node in self.nodes.items()}
        self._cores: dict[str, float] = {}  # by machine: taken, and not reported yet
        self._bytes: dict[str, float] = {}
        self._reports: dict[str, list[Candidate]] = {}
        # group -> (from, to, bytes/s) of each of its streams
        self._streams: dict[str, list[tuple[str, str, float]]] = {}
        # results of `carried_without`, until something is placed
        self._carried: dict[str, dict[Way, float]] = {}
        for (origin, reader), rate in ground.flows.items():
            for id in (origin, reader):
                self._streams.setdefault(id, []).append((origin, reader, rate))
        for node in self.nodes.values():
            self._add(node, node.coming)
            if node.up:
                self._reports.setdefault(_machine(node), []).append(node)

    def put(self, group: GroupToPlace, node: Candidate, stays: bool = False) -> None:
        """With `stays`, the group runs there already, and what it takes is in the node's reports."""
        self.runs_on[group.group] = node.name
        self._carried.clear()
        if not stays:
            self.elements[node.name] += group.elements
            self._add(node, needed(group, node))

    def _add(self, node: Candidate, need: Need) -> None:
        machine = _machine(node)
        self._cores[machine] = self._cores.get(machine, 0.0) + need.cores
        self._bytes[machine] = self._bytes.get(machine, 0.0) + need.memory_bytes

    def cpu_with(self, group: GroupToPlace, node: Candidate) -> float:
        """Returns the node's CPU (0..) with the group on it. Nodes of one machine report the same CPU at
        different moments, so the mean counts: chance must not make one of them look calmer."""
        reports = [each.cpu_ratio for each in self._reports.get(_machine(node), [node])]
        cpu = sum(reports) / len(reports)
        return (
            cpu + (self._cores[_machine(node)] + needed(group, node).cores) / node.cores
            if node.cores
            else cpu
        )

    def memory_free(self, node: Candidate) -> float | None:
        """Returns the bytes that nothing takes or will take, or None if they are not known."""
        reports = [each.memory_free_bytes for each in self._reports.get(_machine(node), [node])]
        known = [free for free in reports if free is not None]
        return max(0.0, min(known) - self._bytes[_machine(node)]) if known else None

    def carried_without(self, group: str) -> Mapping[Way, float]:
        """Returns bytes/s on each line, for streams whose rate is known, without those of the group."""
        if group not in self._carried:
            found = dict(self.ground.carried)
            for (origin, reader), rate in self.ground.flows.items():
                ends = (self._place(origin), self._place(reader))
                if group not in (origin, reader) and ends[0] is not None and ends[1] is not None:
                    found[ends[0], ends[1]] = found.get((ends[0], ends[1]), 0.0) + rate
            self._carried[group] = found
        return self._carried[group]

    def brought(self, group: str, place: str) -> dict[Way, float]:
        """Returns the bytes/s that the group would add to each line if it ran at the site."""
        found: dict[Way, float] = {}
        for origin, reader, rate in self._streams.get(group, ()):
            other = self._place(origin if group == reader else reader)
            if other is not None and other != place:
                way = (other, place) if group == reader else (place, other)
                found[way] = found.get(way, 0.0) + rate
        return found

    def _place(self, group: str) -> str | None:
        node = self.nodes.get(self.runs_on.get(group, ""))
        return node.place if node is not None else None

    def name(self, group: str) -> str:
        return self.ground.names.get(group, group)


def needed(group: GroupToPlace, node: Candidate) -> Need:
    """Returns what the group needs beyond what its machine already gives it."""
    return NOTHING if group.machine and group.machine == node.machine else group.need


def _machine(node: Candidate) -> str:
    return node.machine or f" {node.name}"  # no machine has such a name


# -- the constraints ----------------------------------------------------------------------------------


def takes_nothing(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    return node.refusal


def is_not_apart(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    others = sorted(room.name(other) for other in group.apart if room.runs_on.get(other) == node.name)
    return f"runs {' and '.join(others)}, from which it must stay apart" if others else None


def has_no_memory(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    free, need = room.memory_free(node), needed(group, node)
    if free is None or need.memory_bytes <= free:
        return None
    assumed = "that it is assumed to need" if need.assumed else "needed"
    return f"has {_megabytes(free)} free of the {_megabytes(need.memory_bytes)} {assumed}"


def has_no_line(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    """A line that carries more than it can slows all that it carries, for ever."""
    brought = room.brought(group.group, node.place)
    if not brought:
        return None
    carried = room.carried_without(group.group)
    for (origin, target), more in sorted(brought.items()):
        most, now = room.ground.bytes_per_s.get((origin, target)), carried.get((origin, target), 0.0)
        if most is not None and now + more > most:
            return (
                f"has no line for it: that from {origin} to {target} carries {_megabits(now)} of "
                f"{_megabits(most)} Mbit/s and it brings {_megabits(more)}"
            )
    return None


Constraint = Callable[[GroupToPlace, Candidate, Room], str | None]
ASKED: tuple[Constraint, ...] = (is_not_apart, has_no_memory, has_no_line)
"""A pin overrides these, with a warning."""


def why_not(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    """Returns the first reason against the node, or None if it can take the group."""
    for constraint in (takes_nothing, *ASKED):
        if (reason := constraint(group, node, room)) is not None:
            return reason
    return None


def warnings(group: GroupToPlace, node: Candidate, room: Room) -> list[str]:
    """Returns what a user's choice overrides, as sentences about the node."""
    reasons = (constraint(group, node, room) for constraint in ASKED)
    return [reason for reason in reasons if reason is not None]


def percent(ratio: float) -> str:
    return f"{ratio:.0%}".replace("%", " %")


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


def _megabits(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e6:.3g}"
