"""Graphs of names: topological order and cycles, in a fixed order for equal input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def topological_order(nodes: Iterable[str], before: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """`nodes` so that each comes after all of `before[node]`; those on or behind a cycle are left out.

    Nodes that could swap places keep the order in which they were given.
    """
    remaining = list(dict.fromkeys(nodes))
    known = set(remaining)
    placed: dict[str, None] = {}
    while True:
        ready = [n for n in remaining if all(b in placed or b not in known for b in before.get(n, ()))]
        if not ready:
            return tuple(placed)
        placed.update(dict.fromkeys(ready))
        remaining = [n for n in remaining if n not in placed]


def find_cycles(nodes: Iterable[str], before: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """One cycle through each knot of nodes, e.g. ('a', 'b', 'a'), following the data's direction."""
    order = list(dict.fromkeys(nodes))
    placed = set(topological_order(order, before))
    left = [n for n in order if n not in placed]
    among = set(left)
    cycles: list[tuple[str, ...]] = []
    covered: set[str] = set()
    for start in left:
        if start in covered:
            continue
        path = _path_back(start, before, among)
        if path is not None:
            cycles.append(path)
            covered.update(path)
    return cycles


def _path_back(start: str, before: Mapping[str, Iterable[str]], among: set[str]) -> tuple[str, ...] | None:
    """The shortest way from `start` back to itself, or None."""
    toward: dict[str, str] = {}
    frontier = [start]
    while frontier:
        following = []
        for node in frontier:
            for previous in before.get(node, ()):
                if previous not in among or previous in toward:
                    continue
                toward[previous] = node
                if previous == start:
                    return _walk(start, toward)
                following.append(previous)
        frontier = following
    return None


def _walk(start: str, toward: Mapping[str, str]) -> tuple[str, ...]:
    path = [start, toward[start]]
    while path[-1] != start:
        path.append(toward[path[-1]])
    return tuple(path)


def connected(nodes: Iterable[str], before: Mapping[str, Iterable[str]]) -> bool:
    """Whether the nodes hang together by edges among themselves, whatever their direction."""
    members = list(dict.fromkeys(nodes))
    if not members:
        return True
    neighbours: dict[str, set[str]] = {member: set() for member in members}
    for member in members:
        for previous in before.get(member, ()):
            if previous in neighbours:
                neighbours[member].add(previous)
                neighbours[previous].add(member)
    reached, frontier = {members[0]}, [members[0]]
    while frontier:
        following = neighbours[frontier.pop()] - reached
        reached |= following
        frontier.extend(following)
    return len(reached) == len(members)
