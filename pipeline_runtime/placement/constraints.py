"""What a node has to fulfil to be given a group, and what is taken of nodes and lines meanwhile. Pure.

Each constraint is a function that says why a node cannot take a group, as said of the node; None: it can. CPU
is none of them: a node that is too busy is slow, one without memory ends what it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline_runtime.placement.links import Latencies
from pipeline_runtime.placement.move_cost import Rates
from pipeline_runtime.placement.needs import NOTHING, Need

Closed = Literal["cordoned", "leaving", "in maintenance"]
"""Why a node was told to take nothing new, said of it: by a person, by its own end, by a policy."""
Way = tuple[str, str]
"""From a site to another."""
Flows = Mapping[tuple[str, str], float]
"""(Group, another that reads it) -> bytes/s, as measured. What is not known is not there."""


@dataclass(frozen=True)
class Candidate:
    """A registered node as placement sees it."""

    name: str
    up: bool
    ready: bool  # its Spark session is up
    closed: Closed | None
    elements: int = 0  # that run or shall run there already
    place: str = ""  # its site; a node without one is a place of its own
    cpu_ratio: float = 0.0  # 0..1, of all its cores
    cores: int = 0  # 0: not known
    memory_free_bytes: float | None = None  # None: not known
    machine: str = ""  # nodes of one machine share its CPU and memory; empty: none does
    coming: Need = NOTHING  # of what shall run there, and does not show in what the node reports yet

    @property
    def refusal(self) -> str | None:
        """Why it takes nothing new now, said of it; None: it does."""
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
    pin: str | None = None  # by the document or by whoever deploys
    pinned_by: str = "it was pinned there"  # in words, for the record
    site: str | None = None  # it runs on a node of that site
    reads: frozenset[str] = frozenset()  # the groups whose streams it reads
    apart: frozenset[str] = frozenset()  # the groups that it shares no node with
    without: frozenset[str] = frozenset()  # nodes that it is to leave, or has tried in vain
    need: Need = NOTHING
    machine: str = ""  # on which it runs, so that this has what it needs; empty: none has


@dataclass(frozen=True)
class Ground:
    """What is known of lines and streams."""

    latencies: Latencies = field(default_factory=dict)  # of the rows of streams
    bytes_per_s: Rates = field(default_factory=dict)  # that lines carry at most
    flows: Flows = field(default_factory=dict)  # among the groups of the pipeline
    carried: Mapping[Way, float] = field(default_factory=dict)  # bytes/s, of others
    names: Mapping[str, str] = field(default_factory=dict)  # group -> as people say

    def by_broker(self, sites: Iterable[str]) -> bool:
        """The latencies between them are those by the Kafka broker: there is one within a site, too."""
        return all(self.latencies.get((site, site), 0.0) > 0 for site in sites)


UNKNOWN = Ground()


class Room:
    """What is left of nodes and lines, while one group after another is placed."""

    def __init__(self, nodes: Iterable[Candidate], ground: Ground, runs_on: Mapping[str, str]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.ground = ground
        self.runs_on = dict(runs_on)
        self.elements = {name: node.elements for name, node in self.nodes.items()}
        self._cores: dict[str, float] = {}  # by machine: taken, and not reported yet
        self._bytes: dict[str, float] = {}
        self._reports: dict[str, list[Candidate]] = {}
        self._streams: dict[str, list[tuple[str, str, float]]] = {}  # of each group: from, to, bytes/s
        self._carried: dict[str, dict[Way, float]] = {}  # as `carried_without`, until something is placed
        for (origin, reader), rate in ground.flows.items():
            for id in (origin, reader):
                self._streams.setdefault(id, []).append((origin, reader, rate))
        for node in self.nodes.values():
            self._add(node, node.coming)
            if node.up:
                self._reports.setdefault(_machine(node), []).append(node)

    def put(self, group: GroupToPlace, node: Candidate, stays: bool = False) -> None:
        """`stays`: it runs there, so what it takes is taken."""
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
        """The node's CPU (0..) once the group runs there. Several nodes of one machine report the same one at
        different moments: the mean, so that chance makes none of them look calmer."""
        reports = [each.cpu_ratio for each in self._reports.get(_machine(node), [node])]
        cpu = sum(reports) / len(reports)
        return (
            cpu + (self._cores[_machine(node)] + needed(group, node).cores) / node.cores
            if node.cores
            else cpu
        )

    def memory_free(self, node: Candidate) -> float | None:
        """Bytes that nothing takes or is to take; None: not known."""
        reports = [each.memory_free_bytes for each in self._reports.get(_machine(node), [node])]
        known = [free for free in reports if free is not None]
        return max(0.0, min(known) - self._bytes[_machine(node)]) if known else None

    def carried_without(self, group: str) -> Mapping[Way, float]:
        """Bytes/s on each line, of the streams whose rate is known, without those of the group."""
        if group not in self._carried:
            found = dict(self.ground.carried)
            for (origin, reader), rate in self.ground.flows.items():
                ends = (self._place(origin), self._place(reader))
                if group not in (origin, reader) and ends[0] is not None and ends[1] is not None:
                    found[ends[0], ends[1]] = found.get((ends[0], ends[1]), 0.0) + rate
            self._carried[group] = found
        return self._carried[group]

    def brought(self, group: str, place: str) -> dict[Way, float]:
        """Bytes/s that the group would bring onto each line if it ran at the site."""
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
    """Beside what its machine gives already."""
    return NOTHING if group.machine and group.machine == node.machine else group.need


def _machine(node: Candidate) -> str:
    return node.machine or f" {node.name}"  # no machine is called so


# -- the constraints ----------------------------------------------------------------------------------


def takes_nothing(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    return node.refusal


def is_not_apart(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    others = sorted(room.name(other) for other in group.apart if room.runs_on.get(other) == node.name)
    return f"runs {' and '.join(others)} which it is to be apart from" if others else None


def has_no_memory(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    free, need = room.memory_free(node), needed(group, node)
    if free is None or need.memory_bytes <= free:
        return None
    assumed = "that it is assumed to need" if need.assumed else "needed"
    return f"has {_megabytes(free)} free of the {_megabytes(need.memory_bytes)} {assumed}"


def has_no_line(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    """A line that carries more than it can slows what it carries down, for ever."""
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
"""What a pin goes over, with a warning."""


def why_not(group: GroupToPlace, node: Candidate, room: Room) -> str | None:
    """The first thing that speaks against it; None: it can take the group."""
    for constraint in (takes_nothing, *ASKED):
        if (reason := constraint(group, node, room)) is not None:
            return reason
    return None


def warnings(group: GroupToPlace, node: Candidate, room: Room) -> list[str]:
    """What a person's will goes over, said of the node."""
    reasons = (constraint(group, node, room) for constraint in ASKED)
    return [reason for reason in reasons if reason is not None]


def percent(ratio: float) -> str:
    return f"{ratio:.0%}".replace("%", " %")


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


def _megabits(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e6:.3g}"
