"""The problem of backups: which nodes store them, and where each group is redeployed when its node fails.
Pure.

N. Iijima, K. Amemiya, J. Ogawa, H. Miyoshi, "Deciding Backup Location Methods for Distributed Stream
Processing System", ICICT 2020, doi:10.1109/ICICT50521.2020.00047. Its task and server are group and node
here. A group t that runs on node w sends d bytes/s of snapshots and replicated input to node i, which holds b
bytes of it. When w fails, node j fetches them at rate Z and goes on. Minimise the sum of b / Z over all
groups, which is the time that their recoveries take, so that for each single node f that may fail

    i != w, j != w
    on each link e: what groups off f store over e + what groups on f fetch over e <= U(e)
    on each node j: the CPU of the groups on f that are redeployed to j <= what j has to spare

and so that what all groups store fits on each link while no node has failed. Added here: the room for backups
on a node is limited, and a group may be barred from nodes. The paper leaves three things open. Here ways are
those with the fewest links, and among them the widest. Z between two nodes is `share` of the narrowest link
on the way, since the whole of it would leave no room for other backups. If i = j, Z is the disk's rate.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SHARE = 0.5
ROUNDING = 1e-9  # the relative error allowed in a sum of floats


@dataclass(frozen=True)
class RecoveryNode:
    name: str
    cpu_spare: float  # cores
    disk_bytes_per_s: float  # the rate at which it reads a backup that it holds itself
    disk_spare_bytes: float = math.inf  # for backups that it does not hold yet


@dataclass(frozen=True)
class Link:
    """Joins two vertices: nodes, or what stands between them (a site's switch). Both directions share it."""

    a: str
    b: str
    bytes_per_s: float


@dataclass(frozen=True)
class RecoveryGroup:
    name: str
    node: str  # where it runs
    cpu: float  # cores
    backup_bytes: float
    store_bytes_per_s: float
    latency_ms: float = 0.0  # its target; the published algorithm takes the most urgent groups first
    held_by: str | None = None  # the node that already has the bytes of its backup
    no_store: frozenset[str] = frozenset()  # nodes that may not hold its backup
    no_redeploy: frozenset[str] = frozenset()  # nodes on which it may not go on


class Places(NamedTuple):
    """Indices of nodes."""

    store: int
    redeploy: int


Plan = Mapping[str, Places | None]
"""Group -> its places. A group for which there is no room is rejected and has None."""


class RecoveryProblem:
    """The arrays by which plans are made and judged. n is the number of nodes, L the most links on a way."""

    def __init__(
        self,
        nodes: Sequence[RecoveryNode],
        links: Sequence[Link],
        groups: Sequence[RecoveryGroup],
        share: float = SHARE,
    ) -> None:
        """Raises ValueError if a group runs on no node here, or two nodes cannot reach each other."""
        self.nodes, self.links = tuple(nodes), tuple(links)
        self.index = {node.name: number for number, node in enumerate(nodes)}
        self.spare = np.array([node.cpu_spare for node in nodes])
        self.disk = np.array([node.disk_spare_bytes for node in nodes])
        # One more link than there are, without limit: short ways are filled up with it.
        self.capacity = np.array([*(link.bytes_per_s for link in links), np.inf])
        self.ways = _ways(self.nodes, self.links)  # (n, n, L), indices of links
        self.fetch = share * self.capacity[self.ways].min(axis=2)  # (n, n): Z
        np.fill_diagonal(self.fetch, [node.disk_bytes_per_s for node in nodes])
        self._take(groups)

    def with_groups(self, groups: Sequence[RecoveryGroup]) -> RecoveryProblem:
        """Returns the problem with other groups. Nodes, links and ways, which take long to find, stay. Raises
        ValueError as above."""
        other = copy(self)
        other._take(groups)
        return other

    def _take(self, groups: Sequence[RecoveryGroup]) -> None:
        if unknown := [group.name for group in groups if group.node not in self.index]:
            raise ValueError(f"{unknown[0]} runs on no node here")
        self.groups = tuple(groups)
        self.works = np.array([self.index[group.node] for group in groups], dtype=np.intp)
        self.cpu = np.array([group.cpu for group in groups])
        self.bytes = np.array([group.backup_bytes for group in groups])
        self.rate = np.array([group.store_bytes_per_s for group in groups])
        held = [self.index.get(group.held_by or "", -1) for group in groups]
        self.held = np.array(held, dtype=np.intp)  # -1 when none of these nodes holds it
        self.may_store = self._allowed([{group.node, *group.no_store} for group in groups])
        self.may_redeploy = self._allowed([{group.node, *group.no_redeploy} for group in groups])

    def _allowed(self, barred: Sequence[Set[str]]) -> Mask:
        """Returns an array of (groups, n)."""
        names = [node.name for node in self.nodes]
        allowed = [[name not in each for name in names] for each in barred]
        return np.array(allowed, dtype=np.bool_).reshape(len(barred), len(names))

    def cost_s(self, group: int, places: Places) -> float:
        """Returns how many seconds its recovery takes to fetch the backup."""
        return float(self.bytes[group] / self.fetch[places])

    def alone_s(self) -> Floats:
        """Returns what each group would cost if it were alone. No plan costs less than the sum. Infinity if
        there is no other node."""
        widest = np.zeros(len(self.nodes))
        for works in range(len(self.nodes)):
            others = np.delete(np.arange(len(self.nodes)), works)
            widest[works] = self.fetch[np.ix_(others, others)].max(initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone: Floats = self.bytes / widest[self.works]
        return np.nan_to_num(alone, posinf=np.inf)  # an empty backup is fetched in no time, from anywhere


def rejected(plan: Plan) -> list[str]:
    return [group for group, places in plan.items() if places is None]


def _ways(nodes: Sequence[RecoveryNode], links: Sequence[Link]) -> NDArray[np.intp]:
    """Returns (n, n, L): the links on the way from node to node, filled up with len(links)."""
    beside: dict[str, list[tuple[str, int]]] = {node.name: [] for node in nodes}
    for number, link in enumerate(links):
        beside.setdefault(link.a, []).append((link.b, number))
        beside.setdefault(link.b, []).append((link.a, number))
    found = [_ways_from(node.name, beside, links) for node in nodes]
    for node, ways in zip(nodes, found, strict=True):
        if cut_off := [other.name for other in nodes if other.name not in ways]:
            raise ValueError(f"no link leads from {node.name} to {cut_off[0]}")
    longest = max((len(ways[node.name]) for ways in found for node in nodes), default=0)
    filled = np.full((len(nodes), len(nodes), max(1, longest)), len(links), dtype=np.intp)
    for a, ways in enumerate(found):
        for b, node in enumerate(nodes):
            filled[a, b, : len(ways[node.name])] = ways[node.name]
    return filled


def _ways_from(
    start: str, beside: Mapping[str, list[tuple[str, int]]], links: Sequence[Link]
) -> dict[str, tuple[int, ...]]:
    """Returns the way to each vertex that can be reached, by breadth-first search. Among ways with as many
    links the widest counts. If their narrowest links are equal, the next narrowest counts, so that the order
    of links decides nothing."""
    ways: dict[str, tuple[int, ...]] = {start: ()}
    widths: dict[str, list[float]] = {start: []}
    waiting = deque([start])
    while waiting:
        vertex = waiting.popleft()
        before = ways[vertex]
        for other, link in beside[vertex]:
            known = ways.get(other)
            if known is not None and len(known) <= len(before):
                continue  # true for most links of a dense network, so this check comes first
            width = sorted([*widths[vertex], links[link].bytes_per_s])
            if known is None:
                waiting.append(other)
            elif widths[other] >= width:
                continue
            ways[other], widths[other] = (*before, link), width
    return ways
