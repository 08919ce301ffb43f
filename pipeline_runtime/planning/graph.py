"""Graphs of names: topological order and cycles. The same input always gives the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def topological_order(nodes: Iterable[str], before: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Returns `nodes` so that each comes after all of `before[node]`. Nodes on or behind a cycle are left
    out.

    The order goes by layers: first the nodes that need no other, then those that need only the first layer,
    and so on. Nodes of one layer keep the order in which they were given. Takes time in proportion to nodes
    and edges.
    """
    place = {node: index for index, node in enumerate(dict.fromkeys(nodes))}
    waits_for: dict[str, int] = {}
    after: dict[str, list[str]] = {}
    for node in place:
        needed = {previous for previous in before.get(node, ()) if previous in place}
        waits_for[node] = len(needed)
        for previous in needed:
            after.setdefault(previous, []).append(node)
    placed: list[str] = []
    layer = [node for node, count in waits_for.items() if not count]
    while layer:
        placed += layer
        following = []
        for node in layer:
            for next_node in after.get(node, ()):
                waits_for[next_node] -= 1
                if not waits_for[next_node]:
                    following.append(next_node)
        layer = sorted(following, key=place.__getitem__)
    return tuple(placed)


def find_cycles(nodes: Iterable[str], before: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Returns one cycle through each knot of nodes, e.g. ('a', 'b', 'a'), in the direction of the data.

    A knot is a set of nodes that all reach each other. Takes time in proportion to nodes and edges.
    """
    order = list(dict.fromkeys(nodes))
    placed = set(topological_order(order, before))
    knot_of = _knots([node for node in order if node not in placed], before)
    cycles: list[tuple[str, ...]] = []
    seen: set[int] = set()
    for start, knot in knot_of.items():
        if knot in seen:
            continue
        seen.add(knot)
        path = _path_back(start, before, knot_of)
        if path is not None:  # `path` is None for a single node between two cycles
            cycles.append(path)
    return cycles


def _knots(nodes: list[str], before: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Returns node -> the number of its knot, in the order of `nodes`. Tarjan's algorithm, without
    recursion."""
    among, index, low = set(nodes), dict[str, int](), dict[str, int]()
    knot_of: dict[str, int] = {}
    open_nodes: list[str] = []
    for root in nodes:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        path = [(root, iter(before.get(root, ())))]
        while path:
            node, edges = path[-1]
            for previous in edges:
                if previous not in among or previous in knot_of:
                    continue
                if previous not in index:
                    index[previous] = low[previous] = len(index)
                    open_nodes.append(previous)
                    path.append((previous, iter(before.get(previous, ()))))
                    break
                low[node] = min(low[node], index[previous])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    while True:
                        member = open_nodes.pop()
                        knot_of[member] = index[node]
                        if member == node:
                            break
    return {node: knot_of[node] for node in nodes}


def _path_back(
    start: str, before: Mapping[str, Iterable[str]], knot_of: Mapping[str, int]
) -> tuple[str, ...] | None:
    """Returns the shortest way from `start` back to itself inside its knot, or None if there is none."""
    toward: dict[str, str] = {}
    frontier = [start]
    while frontier:
        following = []
        for node in frontier:
            for previous in before.get(node, ()):
                if knot_of.get(previous) != knot_of[start] or previous in toward:
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
    """Returns whether edges connect all the nodes with each other, whatever the edges' direction."""
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
