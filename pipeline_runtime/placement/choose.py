"""Chooses a node for each group: where it is pinned, else where the fewest elements run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A registered node as placement sees it."""

    name: str
    up: bool
    ready: bool  # its Spark session is up
    cordoned: bool
    elements: int  # that run or shall run there already
    leaving: bool = False  # it was told to stop, and hands its elements over
    maintenance: bool = False  # a policy wants it empty for some time

    @property
    def refusal(self) -> str | None:
        """Why it takes nothing new now, said of it; None: it does."""
        if not self.up:
            return "does not answer"
        if self.cordoned:
            return "is cordoned"
        if self.leaving:
            return "is leaving"
        if self.maintenance:
            return "is in maintenance"
        return None if self.ready else "is still starting"

    @property
    def may_take_new(self) -> bool:
        """As far as it was told; whether it can is another matter."""
        return not (self.cordoned or self.leaving or self.maintenance)

    @property
    def is_free(self) -> bool:
        return self.refusal is None


REFUSED_THEN = {
    "does not answer": "did not answer",
    "is cordoned": "was cordoned",
    "is leaving": "was leaving",
    "is still starting": "was still starting",
}
"""What `Candidate.refusal` is later on."""
NAMED_MAX = 3
"""So many nodes are named of those that took nothing new."""


@dataclass(frozen=True)
class GroupToPlace:
    group: str
    elements: int
    pin: str | None = None  # by the document or by whoever deploys
    pinned_by: str = "it was pinned there"  # in words, for the record


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
) -> tuple[dict[str, Placed], list[PlacementFault]]:
    """As `choose`, with the reasons; the groups that have no node are in the faults instead."""
    nodes = {node.name: node for node in candidates}
    load = {name: node.elements for name, node in nodes.items()}
    placed: dict[str, Placed] = {}
    faults: list[PlacementFault] = []
    # Pinned groups first, so that the free ones see the load these bring.
    for group in sorted(groups, key=lambda group: group.pin is None):
        current = (keep or {}).get(group.group)
        if group.pin is not None:
            problem = _problem(group.pin, nodes, stays=group.pin == current)
            if problem is not None:
                node = nodes.get(group.pin)
                is_away = node is not None and (not node.up or node.leaving)
                faults.append(PlacementFault(group.group, problem, passing=is_away))
                continue
            found = Placed(group.pin, "pinned", group.pinned_by)
        elif current in nodes:
            found = Placed(str(current), "it runs there")
        else:
            free = [name for name, node in nodes.items() if node.is_free]
            if not free:
                waiting = not nodes or not all(other.cordoned for other in nodes.values())
                faults.append(PlacementFault(group.group, _nobody(nodes), passing=waiting))
                continue
            least = min(free, key=lambda name: (load[name], name))
            found = Placed(
                least, _why_free(load[least], len(free)), _why_then(load[least], free, nodes.values())
            )
        placed[group.group] = found
        if found.node != current:
            load[found.node] += group.elements
    return placed, faults


def _why_free(elements: int, free: int) -> str:
    if free == 1:
        return "the only node that is free"
    there = f"{elements} element{'' if elements == 1 else 's'}" if elements else "none"
    return f"the fewest elements are there: {there}"


def _why_then(elements: int, free: Collection[str], nodes: Iterable[Candidate]) -> str:
    of = "only node" if len(free) == 1 else f"fewest elements ({elements or 'none'}) of the {len(free)} nodes"
    found = f"it {'was' if len(free) == 1 else 'had'} the {of} that could take it"
    refused = [f"{node.name} {REFUSED_THEN[node.refusal]}" for node in nodes if node.refusal is not None]
    if not refused:
        return found
    more = f" and {len(refused) - NAMED_MAX} more could not" if len(refused) > NAMED_MAX else ""
    return f"{found}; {', '.join(refused[:NAMED_MAX])}{more}"


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
    if node.cordoned:
        return f"is pinned to {name}, which is cordoned; uncordon it or change the pin"
    if node.leaving:
        return f"is pinned to {name}, which is leaving; start it again or change the pin"
    if node.maintenance:
        return f"is pinned to {name}, which is in maintenance; wait for its end or change the pin"
    return None


def _nobody(nodes: Mapping[str, Candidate]) -> str:
    if not nodes:
        return "there is no node; add one, or check that the local nodes have started"
    states = ", ".join(f"{name} {node.refusal or 'is free'}" for name, node in sorted(nodes.items()))
    return f"no node can take it ({states}); start or uncordon one"
