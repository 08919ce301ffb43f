"""Chooses a node for each group. A pinned group goes where it is pinned. Any other goes to a node that meets
all constraints: one of those nearest to what it reads, then the least busy of these, then the one with the
fewest elements.

"Nearest" is SpanEdge's rule for a global group: the least of the greatest latencies from the sites of all
groups that it reads. H. P. Sajjad et al., "SpanEdge", IEEE/ACM SEC 2016, doi:10.1109/SEC.2016.17. All streams
go through the Kafka broker. Once the way to it is measured (links.py), latencies are counted through it, and
the node nearest to the broker is nearest to all. A group that holds a source reads no other group; its site
says where it has to be.

Three rules are added here: the constraints (constraints.py); a busy node is not taken while another is calm;
and what decides between nodes that are equally near.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from math import inf

from pipeline_runtime.placement.constraints import (
    UNKNOWN,
    Candidate,
    Closed,
    Ground,
    GroupToPlace,
    Room,
    percent,
    warnings,
    why_not,
)
from pipeline_runtime.placement.links import Latencies, farthest_ms
from pipeline_runtime.placement.needs import NOTHING

_OPENED_BY: dict[Closed, str] = {
    "cordoned": "uncordon it",
    "leaving": "start it again",
    "in maintenance": "wait for its end",
}
_PAST = {"is": "was", "does": "did", "has": "had", "runs": "ran"}
NAMED_MAX = 3
"""A message names this many of the nodes that cannot take the group."""
ROUNDS_MAX = 10
"""In this many rounds, groups that found no node are placed before the others."""

NEAR_MS = 10.0
"""Nodes whose distances differ by less are equally near: a probe takes as long where a machine is busy."""
BUSY_CPU = 0.8
CPU_MARGIN = 0.1
"""Nodes whose CPU differs by less are equally busy, since load comes and goes."""


@dataclass(frozen=True)
class PlacementFault:
    group: str
    message: str  # what prevents it, and what to do
    passing: bool = False  # it may pass by itself: a node is starting


class NoPlacement(ValueError):
    """Some groups have no node, and nothing was placed. `faults` names all of them."""

    def __init__(self, faults: Sequence[PlacementFault]) -> None:
        super().__init__("; ".join(f"{fault.group}: {fault.message}" for fault in faults))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class Placed:
    node: str
    why: str  # a sentence about the node
    then: str = ""  # the same for the record, which is read when everything may have changed
    warning: str = ""  # what speaks against a node that a user wants


def choose(
    groups: Iterable[GroupToPlace],
    candidates: Iterable[Candidate],
    keep: Mapping[str, str] | None = None,
    ground: Ground = UNKNOWN,
) -> dict[str, str]:
    """Returns group -> node. `keep` says where groups run now: a group without a pin stays there.

    The same arguments give the same answer, since equal nodes are taken by name. Raises NoPlacement.
    """
    placed, faults = place(groups, candidates, keep, ground)
    if faults:
        raise NoPlacement(faults)
    return {group: found.node for group, found in placed.items()}


def place(
    groups: Iterable[GroupToPlace],
    candidates: Iterable[Candidate],
    keep: Mapping[str, str] | None = None,
    ground: Ground = UNKNOWN,
) -> tuple[dict[str, Placed], list[PlacementFault]]:
    """Does what `choose` does and adds the reasons. Groups without a node are in the faults instead.

    A group that finds no room is placed before the others in another round: they may have a choice where it
    has none. If that does not help, the faults are those of the first round.
    """
    groups, nodes, first = tuple(groups), tuple(candidates), set[str]()
    placed, faults = found = _in_turn(groups, nodes, keep or {}, ground, first)
    for _ in range(ROUNDS_MAX):
        stuck = {fault.group for fault in faults} | first
        if stuck == first:
            break
        first = stuck
        placed, faults = _in_turn(groups, nodes, keep or {}, ground, first)
    return found if faults else (placed, faults)


def _in_turn(
    groups: Sequence[GroupToPlace],
    candidates: Iterable[Candidate],
    keep: Mapping[str, str],
    ground: Ground,
    first: Collection[str],
) -> tuple[dict[str, Placed], list[PlacementFault]]:
    room = Room(candidates, ground, keep)
    placed: dict[str, Placed] = {}
    faults: list[PlacementFault] = []
    # Pinned groups first, so that the others see their load. Each group after all groups that it reads.
    depths = _depths(groups)
    for group in sorted(groups, key=lambda g: (g.pin is None, g.group not in first, depths[g.group])):
        current = keep.get(group.group)
        if group.pin is not None:
            found = _where_pinned(group, room, stays=group.pin == current)
        elif current in room.nodes:
            found = Placed(str(current), "it runs there")
        else:
            found = _where_free(group, room)
        if isinstance(found, PlacementFault):
            faults.append(found)
            continue
        placed[group.group] = found
        room.put(group, room.nodes[found.node], stays=found.node == current)
    return placed, faults


def _where_pinned(group: GroupToPlace, room: Room, stays: bool) -> Placed | PlacementFault:
    pin = str(group.pin)
    problem, node = _problem(pin, room.nodes, stays), room.nodes.get(pin)
    if problem is not None or node is None:
        is_away = node is not None and (not node.up or node.closed == "leaving")
        return PlacementFault(group.group, problem or "", passing=is_away)
    against = [] if stays else warnings(group, node, room)
    then = f"{group.pinned_by}, though it {'; it '.join(map(_then, against))}" if against else group.pinned_by
    return Placed(pin, "pinned", then, "; it ".join(against))


def _where_free(group: GroupToPlace, room: Room) -> Placed | PlacementFault:
    there = [
        node
        for node in room.nodes.values()
        if group.site in (None, node.place) and node.name not in group.without
    ]
    refused = {node.name: reason for node in there if (reason := why_not(group, node, room)) is not None}
    fit = [node for node in there if node.name not in refused]
    if not fit:
        waits = not room.nodes or any(not node.is_free and node.closed != "cordoned" for node in there)
        problem = _nobody(there, refused) if group.site is None else _nobody_at(group.site, there, refused)
        return PlacementFault(group.group, problem, passing=waits)
    cpu = {node.name: room.cpu_with(group, node) for node in fit}
    calm = [node for node in fit if cpu[node.name] < BUSY_CPU]
    origins = {room.nodes[id].place for each in group.reads if (id := room.runs_on.get(each)) in room.nodes}
    # When all nodes are busy, a near one is no better than a far one.
    near, ms = _nearest(calm, origins, room.ground.latencies) if calm else (fit, None)
    least = min(cpu[node.name] for node in near)
    alike = [node for node in near if cpu[node.name] <= least + CPU_MARGIN]
    best = min(alike, key=lambda node: (room.elements[node.name], node.name)).name
    by = ", by the broker" if room.ground.by_broker({*origins, room.nodes[best].place}) else ""
    words = _Words(room.elements[best], len(fit), len(near), len(alike), cpu[best], ms, by)
    why, then = words.why(), words.then()
    if group.site is not None:
        why, then = f"at {group.site}, as the draft says; {why}", f"it was to run at {group.site}; {then}"
    return Placed(best, why, then + _who_could_not(refused))


def _depths(groups: Sequence[GroupToPlace]) -> dict[str, int]:
    """Returns for each group how many groups stand before it in a chain. The groups form no circle."""
    reads = {group.group: group.reads for group in groups}
    depths: dict[str, int] = {}
    for id in TopologicalSorter(reads).static_order():
        depths[id] = 1 + max((depths[other] for other in reads.get(id, ())), default=-1)
    return depths


def _nearest(
    nodes: Sequence[Candidate], origins: Collection[str], latencies: Latencies
) -> tuple[Sequence[Candidate], float | None]:
    """Returns the nodes that are nearest to `origins`, and how far they are at most, in ms. Returns all nodes
    and None if all are equally near or nothing is known."""
    far = {node.name: farthest_ms(((origin, node.place) for origin in origins), latencies) for node in nodes}
    least = min(far.values())
    # When no other site is known to be farther, being at the same site decides nothing.
    if not any(least + NEAR_MS < ms < inf for ms in far.values()):
        return nodes, None
    return [node for node in nodes if far[node.name] <= least + NEAR_MS], least


@dataclass(frozen=True)
class _Words:
    """Says what a node was chosen by."""

    elements: int  # that run there
    fit: int  # this many nodes could take it,
    near: int  # this many of them are calm and as near as it,
    alike: int  # and this many of these are as little busy
    cpu: float  # of the node with the group
    ms: float | None  # how far it is, when others are farther; None when the distance decided nothing
    by: str = ""  # the way that was measured

    def why(self) -> str:
        if self.ms is not None:
            return self._nearest()
        if self.fit == 1:
            return "the only node that can take it"
        if self.alike < self.fit:
            fewest = f", with the fewest elements of {self.alike}" if self.alike > 1 else ""
            return f"the least busy: {percent(self.cpu)} of its CPU{fewest}"
        there = f"{self.elements} element{'' if self.elements == 1 else 's'}" if self.elements else "none"
        return f"the fewest elements are there: {there}"

    def then(self) -> str:
        if self.ms is not None:
            return f"it was {self._nearest()}"
        if self.fit == 1:
            return "it was the only node that could take it"
        of = f"of the {self.fit} nodes that could take it"
        if self.alike < self.fit:
            fewest = f", and the fewest elements of {self.alike} such" if self.alike > 1 else ""
            return f"it was the least busy ({percent(self.cpu)} of its CPU) {of}{fewest}"
        return f"it had the fewest elements ({self.elements or 'none'}) {of}"

    def _nearest(self) -> str:
        near = f"at most {self.ms:.3g} ms{self.by}" if self.ms else "at the same site"
        if self.near == 1:
            return f"nearest to what it reads: {near}"
        if self.alike == 1:
            return f"nearest to what it reads: {near}, the least busy of {self.near}"
        return f"nearest to what it reads: {near}, with the fewest elements of {self.alike}"


def _who_could_not(refused: Mapping[str, str]) -> str:
    if not refused:
        return ""
    named = [f"{name} {_then(reason)}" for name, reason in refused.items()][:NAMED_MAX]
    more = f" and {len(refused) - NAMED_MAX} more could not" if len(refused) > NAMED_MAX else ""
    return f"; {', '.join(named)}{more}"


def _then(refusal: str) -> str:
    """Returns the refusal as it is said later: a cordoned node was cordoned then."""
    verb, rest = refusal.split(" ", 1)
    return f"{_PAST[verb]} {rest}"


def choose_target(
    group: GroupToPlace,
    candidates: Iterable[Candidate],
    keep: Mapping[str, str],
    ground: Ground = UNKNOWN,
    planned: str = "",
    at_any_cost: bool = False,
) -> Placed:
    """Chooses where a group goes that has to leave its node: to `planned`, if that node can take it, else as
    if the group were deployed. `keep` says where the other groups run. Raises NoPlacement.

    With `at_any_cost`, a node without the memory or the line for it, or one that is still starting, is better
    than none.
    """
    nodes, runs_on = tuple(candidates), {id: node for id, node in keep.items() if id != group.group}
    room = Room(nodes, ground, runs_on)
    there = room.nodes.get(planned)
    if there is not None and planned not in group.without and why_not(group, there, room) is None:
        return Placed(planned, "as planned")
    placed, faults = place([group], nodes, runs_on, ground)
    if faults and at_any_cost:
        freed = [replace(node, ready=True) for node in nodes]
        placed, _ = place([replace(group, need=NOTHING)], freed, runs_on, replace(ground, bytes_per_s={}))
    if group.group not in placed:
        raise NoPlacement(faults)
    return placed[group.group]


def _problem(name: str, nodes: Mapping[str, Candidate], stays: bool) -> str | None:
    node = nodes.get(name)
    if node is None:
        known = ", ".join(sorted(nodes)) or "none"
        return f"is pinned to the node {name!r}, which does not exist; registered nodes: {known}"
    if stays:
        return None
    if not node.up:
        return f"is pinned to {name}, which does not answer; start that node or change the pin"
    if node.closed is not None:
        return f"is pinned to {name}, which is {node.closed}; {_OPENED_BY[node.closed]} or change the pin"
    return None


def _nobody(nodes: Sequence[Candidate], refused: Mapping[str, str]) -> str:
    if not nodes:
        return "there is no node; add one, or check that the local nodes have started"
    reasons = ", ".join(f"{name} {reason}" for name, reason in sorted(refused.items()))
    return f"no node can take it ({reasons}); {_what_to_do(nodes)}"


def _what_to_do(nodes: Sequence[Candidate]) -> str:
    if any(node.is_free for node in nodes):
        return "make room on one, or pin the element to one that should take it anyway"
    return "start or uncordon one"


def _nobody_at(site: str, there: Sequence[Candidate], refused: Mapping[str, str]) -> str:
    if not there:
        return f"is set to run at {site}, but no node is there; add one there, or choose another site"
    return f"is set to run at {site}: {_nobody(there, refused)} there, or choose another site"
