"""Chooses a node for each group: where it is pinned, else nearest to what it reads, else where the fewest
elements run.

"Nearest" is SpanEdge's rule for a global group (see geo.py): the least of the greatest latencies from the
sites of all that it reads. A group that holds a source reads nothing here; its site says where it has to be.
Added here: of nodes that are as near as each other the one with the fewest elements is taken, and a node
whose CPU is busy is not taken for being near.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from math import inf
from typing import Literal

from pipeline_runtime.placement.links import NO_LATENCIES, Latencies, farthest_ms

Closed = Literal["cordoned", "leaving", "in maintenance"]
"""Why a node was told to take nothing new, said of it: by a person, by its own end, by a policy."""
_OPENED_BY: dict[Closed, str] = {
    "cordoned": "uncordon it",
    "leaving": "start it again",
    "in maintenance": "wait for its end",
}


@dataclass(frozen=True)
class Candidate:
    """A registered node as placement sees it."""

    name: str
    up: bool
    ready: bool  # its Spark session is up
    closed: Closed | None
    elements: int  # that run or shall run there already
    place: str = ""  # its site; a node without one is a place of its own
    cpu_ratio: float = 0.0  # 0..1, of all its cores

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


_PAST = {"is": "was", "does": "did"}
NAMED_MAX = 3
"""So many nodes are named of those that took nothing new."""


@dataclass(frozen=True)
class GroupToPlace:
    group: str
    elements: int
    pin: str | None = None  # by the document or by whoever deploys
    pinned_by: str = "it was pinned there"  # in words, for the record
    site: str | None = None  # it runs on a node of that site
    reads: frozenset[str] = frozenset()  # the groups whose streams it reads


NEAR_MS = 10.0
"""By less no node is nearer than another: a probe takes as long where a machine is busy."""
BUSY_CPU = 0.8


@dataclass(frozen=True)
class PlacementFault:
    group: str
    message: str  # what is in the way, and what to do
    passing: bool = False  # it may go away by itself: a node that is starting


class NoPlacement(ValueError):
    """Some groups have no node; `faults` names all of them. Nothing was placed."""

    def __init__(self, faults: Sequence[PlacementFault]) -> None:
        super().__init__("; ".join(f"{fault.group}: {fault.message}" for fault in faults))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class Placed:
    node: str
    why: str  # in words, as said of the node
    then: str = ""  # the same for the record, to be read when all may be different


def choose(
    groups: Iterable[GroupToPlace],
    candidates: Iterable[Candidate],
    keep: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Group -> node. `keep` says where groups run now: one without a pin stays there.

    The same arguments give the same answer: equals are taken by name. Raises NoPlacement.
    """
    placed, faults = place(groups, candidates, keep)
    if faults:
        raise NoPlacement(faults)
    return {group: found.node for group, found in placed.items()}


def place(
    groups: Iterable[GroupToPlace],
    candidates: Iterable[Candidate],
    keep: Mapping[str, str] | None = None,
    latencies: Latencies = NO_LATENCIES,
) -> tuple[dict[str, Placed], list[PlacementFault]]:
    """As `choose`, with the reasons; the groups that have no node are in the faults instead."""
    nodes = {node.name: node for node in candidates}
    load = {name: node.elements for name, node in nodes.items()}
    keep = keep or {}
    runs_on = dict(keep)
    placed: dict[str, Placed] = {}
    faults: list[PlacementFault] = []
    # Pinned groups first, so that the free ones see the load these bring; and each behind all that it reads.
    groups = tuple(groups)
    depths = _depths(groups)
    for group in sorted(groups, key=lambda group: (group.pin is None, depths[group.group])):
        current = keep.get(group.group)
        if group.pin is not None:
            problem = _problem(group.pin, nodes, stays=group.pin == current)
            if problem is not None:
                node = nodes.get(group.pin)
                is_away = node is not None and (not node.up or node.closed == "leaving")
                faults.append(PlacementFault(group.group, problem, passing=is_away))
                continue
            found = Placed(group.pin, "pinned", group.pinned_by)
        elif current in nodes:
            found = Placed(str(current), "it runs there")
        else:
            there = {name: node for name, node in nodes.items() if group.site in (None, node.place)}
            free = [name for name, node in there.items() if node.is_free]
            if not free:
                waiting = not nodes or not all(other.closed == "cordoned" for other in there.values())
                problem = _nobody(there) if group.site is None else _nobody_at(group.site, there)
                faults.append(PlacementFault(group.group, problem, passing=waiting))
                continue
            origins = {nodes[runs_on[id]].place for id in group.reads if runs_on.get(id) in nodes}
            calm = [name for name in free if nodes[name].cpu_ratio < BUSY_CPU]
            near, ms = _nearest({name: nodes[name].place for name in calm}, origins, latencies)
            near = near if ms is not None else free
            least = min(near, key=lambda name: (load[name], name))
            found = _placed(least, load[least], len(near), ms, group.site, there.values())
        placed[group.group], runs_on[group.group] = found, found.node
        if found.node != current:
            load[found.node] += group.elements
    return placed, faults


def _depths(groups: Sequence[GroupToPlace]) -> dict[str, int]:
    """Of each group how many stand before it, one after another. They make no circle."""
    reads = {group.group: group.reads for group in groups}
    depths: dict[str, int] = {}
    for id in TopologicalSorter(reads).static_order():
        depths[id] = 1 + max((depths[other] for other in reads.get(id, ())), default=-1)
    return depths


def _nearest(
    free: Mapping[str, str], origins: Collection[str], latencies: Latencies
) -> tuple[list[str], float | None]:
    """The nodes that are nearest to `origins`, and how far that is at most, in ms. None: they are alike, or
    nothing is known. `free`: node -> its place."""

    far = {
        name: farthest_ms(((origin, place) for origin in origins), latencies) for name, place in free.items()
    }
    least = min(far.values(), default=inf)
    # Where no other is known to be further, being at the same place says nothing.
    if not any(least + NEAR_MS < ms < inf for ms in far.values()):
        return [], None
    return [name for name, ms in far.items() if ms <= least + NEAR_MS], least


def _placed(
    node: str,
    elements: int,
    alike: int,
    ms: float | None,
    site: str | None,
    there: Iterable[Candidate],
) -> Placed:
    """`alike`: among so many nodes it has the least elements; `ms`: they are so near, and others further.
    `there`: all nodes, of a group with a `site` those at it."""
    if ms is not None:
        near = f"at most {ms:.3g} ms" if ms else "at the same site"
        also = "" if alike == 1 else f", with the fewest elements of {alike}"
        why, then = (
            f"nearest to what it reads: {near}{also}",
            f"it was nearest to what it reads: {near}{also}",
        )
    else:
        why, then = _why_free(elements, alike), _why_then(elements, alike)
    if site is not None:
        why, then = f"at {site}, as the draft says; {why}", f"it was to run at {site}; {then}"
    return Placed(node, why, then + _who_could_not(there))


def _why_free(elements: int, free: int) -> str:
    if free == 1:
        return "the only node that is free"
    there = f"{elements} element{'' if elements == 1 else 's'}" if elements else "none"
    return f"the fewest elements are there: {there}"


def _why_then(elements: int, free: int) -> str:
    of = "only node" if free == 1 else f"fewest elements ({elements or 'none'}) of the {free} nodes"
    return f"it {'was' if free == 1 else 'had'} the {of} that could take it"


def _who_could_not(nodes: Iterable[Candidate]) -> str:
    refused = [f"{node.name} {_then(node.refusal)}" for node in nodes if node.refusal is not None]
    if not refused:
        return ""
    more = f" and {len(refused) - NAMED_MAX} more could not" if len(refused) > NAMED_MAX else ""
    return f"; {', '.join(refused[:NAMED_MAX])}{more}"


def _then(refusal: str) -> str:
    """As it is said later on: what is cordoned was cordoned then."""
    verb, rest = refusal.split(" ", 1)
    return f"{_PAST[verb]} {rest}"


def choose_target(
    group: str, elements: int, away_from: str, candidates: Iterable[Candidate], planned: str = ""
) -> str:
    """Where a group goes that has to leave `away_from`: to `planned`, if that can take it.

    Raises NoPlacement.
    """
    others = [node for node in candidates if node.name != away_from]
    if any(node.name == planned and node.is_free for node in others):
        return planned
    return choose([GroupToPlace(group, elements)], others)[group]


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


def _nobody(nodes: Mapping[str, Candidate]) -> str:
    if not nodes:
        return "there is no node; add one, or check that the local nodes have started"
    states = ", ".join(f"{name} {node.refusal or 'is free'}" for name, node in sorted(nodes.items()))
    return f"no node can take it ({states}); start or uncordon one"


def _nobody_at(site: str, there: Mapping[str, Candidate]) -> str:
    if not there:
        return f"is to run at {site}, where no node is; add one there, or choose another site"
    return f"is to run at {site}: {_nobody(there)} there, or choose another site"
