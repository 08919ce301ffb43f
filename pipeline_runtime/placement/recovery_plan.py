"""Plans where backups lie and where groups are redeployed. `recovery` states the problem. Pure.

1. Each group in turn gets the cheapest pair of nodes that still fits, hardest groups first.
2. Repair: when a group finds no room, others make room if they find places themselves.
3. While a group has no place, all starts from the beginning, with the groups that had none first (squeaky
   wheel optimization, D. E. Joslin and D. P. Clements, J. Artif. Intell. Res. 10, 1999). The plan with the
   fewest rejected groups is taken.
4. Local search: a group without its best pair tries to get a better one in the same way. A step that does not
   make the plan cheaper is undone.

So no step makes a plan worse, and the same problem always has the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline_runtime.placement.recovery import ROUNDING, Floats, Mask, Places, Plan, RecoveryProblem

Nodes = NDArray[np.intp] | int
LOOKS_MIN, LOOKS_PER_GROUP = 6_000, 6
"""How often a place may be looked for. One look takes some 0.1 ms at 30 nodes and 0.2 ms at 200."""
ROUNDS_MAX = 20  # how often a plan is started
VICTIMS_MAX = 60  # the most groups that are tried to make room for one, the likeliest first
TOGETHER_MAX = 6  # the most groups that make room together
GAIN_S_MIN = 1e-9


def plan_recovery(
    problem: RecoveryProblem, keep: Plan | None = None, *, looks: int | None = None
) -> dict[str, Places | None]:
    """Returns group -> places, with None for groups that found no room.

    `keep` is a plan in use: a group stays where it says if that still fits, even if there is a better place.
    `looks` bounds the time.
    """
    left = LOOKS_MIN + LOOKS_PER_GROUP * len(problem.groups) if looks is None else looks
    best, first = None, list[int]()
    for _ in range(ROUNDS_MAX):
        search = _Search(problem, left, first)
        search.keep(keep or {})
        search.construct()
        search.repair()
        left, homeless = search.looks, search.homeless()
        if best is None or len(homeless) < len(best.homeless()):
            best = search
        if not homeless or left <= 0:
            break
        first = [*homeless, *(group for group in first if group not in homeless)]
    assert best is not None
    best.looks = left
    if keep is None:
        best.improve()
    return {group.name: best.places[number] for number, group in enumerate(problem.groups)}


class _Room:
    """What is taken of links and nodes, for each node that may fail, while groups come and go."""

    def __init__(self, problem: RecoveryProblem) -> None:
        self._problem = problem
        n, links = len(problem.nodes), len(problem.capacity)
        self._capacity = problem.capacity * (1 + ROUNDING)
        self._spare = problem.spare * (1 + ROUNDING)
        self._disk = problem.disk * (1 + ROUNDING)  # free disk
        self._stored = np.zeros(links)  # traffic of all backups on each link
        self._own = np.zeros((n, links))  # the part of it that groups on f send
        self._fetched = np.zeros((n, links))  # what is fetched when f fails
        self._cpu = np.zeros((n, n))  # [f, j]: CPU of what is redeployed to j when f fails
        self._held = np.zeros(n)  # how many backups lie there
        apart = problem.fetch.copy()
        np.fill_diagonal(apart, 0.0)
        self._widest_apart = apart.max(initial=0.0)

    def change(self, group: int, places: Places, sign: int) -> None:
        problem = self._problem
        works, rate = problem.works[group], sign * problem.rate[group]
        way = problem.ways[works, places.store]
        # A way has no link twice, except for the unlimited one that fills it up.
        self._stored[way] += rate
        self._own[works, way] += rate
        if places.store != places.redeploy:
            self._fetched[works, problem.ways[places]] += sign * problem.fetch[places]
        self._cpu[works, places.redeploy] += sign * problem.cpu[group]
        self._held[places.store] += sign
        if places.store != problem.held[group]:
            self._disk[places.store] -= sign * problem.bytes[group]

    def fits(self, group: int, places: Places) -> bool:
        problem, works = self._problem, int(self._problem.works[group])
        if (
            not problem.may_redeploy[group, places.redeploy]
            or self._spare[places.redeploy] - self._cpu[works, places.redeploy] < problem.cpu[group]
        ):
            return False
        storing, _ = self._storing(group, works)
        width = problem.fetch[places]
        together = places.store == places.redeploy
        return bool(storing[places.store] and (together or self._fetchable(works, *places).min() >= width))

    def best(self, group: int) -> Places | None:
        """Returns the cheapest places that fit now. Among equals, those that take the smallest part of what
        is free."""
        problem, works = self._problem, int(self._problem.works[group])
        left = self._spare - self._cpu[works]
        redeploying = (left >= problem.cpu[group]) & problem.may_redeploy[group]
        if not (redeploying.any() and problem.may_store[group].any()):
            return None
        storing, pressure = self._storing(group, works)
        if not storing.any():
            return None
        strain = problem.cpu[group] / np.maximum(left, 1e-12)
        found = _cheapest(problem, storing & redeploying, pressure + strain, self._held)
        width = -np.inf if found is None else problem.fetch[found, found]
        apart = None
        if width < self._widest_apart:
            apart = self._apart(works, storing, redeploying, width)
        if apart is not None:
            pairs, widths = apart
            strains = pressure[pairs[0]] + strain[pairs[1]]
            at = int(np.lexsort((self._held[pairs[0]], strains, -widths))[0])
            return Places(int(pairs[0][at]), int(pairs[1][at]))
        return None if found is None else Places(found, found)

    def _storing(self, group: int, works: int) -> tuple[Mask, Floats]:
        """Returns the nodes to which its backup can be sent whatever node fails, and what part of the free
        room on the way it takes."""
        problem, rate = self._problem, self._problem.rate[group]
        surplus = self._fetched - self._own
        surplus[works] = 0.0  # when its own node fails, it sends nothing
        room = self._capacity - self._stored - np.maximum(surplus.max(axis=0), 0.0)
        narrowest = room[problem.ways[works]].min(axis=1)
        roomy = self._disk >= problem.bytes[group]
        if problem.held[group] >= 0:
            roomy[problem.held[group]] = True
        able: Mask = (narrowest >= rate) & roomy & problem.may_store[group]
        return able, rate / np.maximum(narrowest, 1e-12)

    def _fetchable(self, works: int, stores: Nodes, redeploys: Nodes) -> Floats:
        """Returns the rates at which these pairs can still fetch when the node fails."""
        room = self._capacity - (self._stored - self._own[works] + self._fetched[works])
        narrowest: Floats = room[self._problem.ways[stores, redeploys]].min(axis=-1)
        return narrowest

    def _apart(
        self, works: int, storing: Mask, redeploying: Mask, width: float
    ) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], Floats] | None:
        """Returns the pairs of two nodes over which the backup is fetched faster than at `width`, and the
        rate of each."""
        problem = self._problem
        able = (problem.fetch > width) & storing[:, None] & redeploying[None, :]
        np.fill_diagonal(able, False)
        stores, redeploys = np.nonzero(able)
        if not len(stores):
            return None
        widths = problem.fetch[stores, redeploys]
        fits = self._fetchable(works, stores, redeploys) >= widths
        return ((stores[fits], redeploys[fits]), widths[fits]) if fits.any() else None


def _cheapest(problem: RecoveryProblem, able: Mask, strain: Floats, held: Floats) -> int | None:
    """Returns the node that both stores and takes over. Among those under equal strain, the one that holds
    the fewest backups."""
    nodes = np.flatnonzero(able)
    if not len(nodes):
        return None
    widths = problem.fetch[nodes, nodes]
    return int(nodes[np.lexsort((held[nodes], strain[nodes], -widths))[0]])


class _Search:
    """`first` holds groups that are placed before the others, in this order."""

    def __init__(self, problem: RecoveryProblem, looks: int, first: Sequence[int] = ()) -> None:
        self._problem = problem
        self._room = _Room(problem)
        self._first = {group: number for number, group in enumerate(first)}
        self.looks = looks
        self.places: list[Places | None] = [None] * len(problem.groups)
        self._cost = np.zeros(len(problem.groups))

    def keep(self, plan: Plan) -> None:
        """Keeps the parts of a plan that still fit, largest groups first."""
        problem = self._problem
        for group in np.lexsort((-problem.bytes, -problem.cpu)):
            places = plan.get(problem.groups[group].name)
            if places is not None and self._room.fits(int(group), places):
                self._put(int(group), places)

    def construct(self) -> None:
        for group in self._hardest_first():
            if self.places[group] is None:
                self._place(group)

    def repair(self) -> None:
        for group in self._hardest_first():
            if self.places[group] is None and not self._place(group):
                self._exchange(group)

    def _hardest_first(self) -> list[int]:
        """Orders groups by the larger of what they take of a usual node and of a usual link."""
        problem = self._problem
        cpu = problem.cpu / max(problem.spare.mean(), 1e-12)
        rate = problem.rate / max(problem.capacity[:-1].mean() if len(problem.links) else 1.0, 1e-12)
        order = [int(group) for group in np.lexsort((-problem.bytes, -np.maximum(cpu, rate)))]
        return sorted(order, key=lambda group: self._first.get(group, len(self._first)))

    def homeless(self) -> list[int]:
        return [group for group in self._hardest_first() if self.places[group] is None]

    def improve(self) -> None:
        """Improves the plan until nothing gets better or the looks are used up."""
        better, alone = any(self.places), self._problem.alone_s()
        while better and self.looks > 0:
            better = False
            lost = self._cost - alone
            for group in np.argsort(-lost):
                if lost[group] <= GAIN_S_MIN or self.looks <= 0:
                    break
                if self.places[group] is not None:
                    better |= self._move(int(group)) or self._exchange(int(group))

    # --- one step

    def _place(self, group: int) -> bool:
        self.looks -= 1
        places = self._room.best(group)
        if places is None:
            return False
        self._put(group, places)
        return True

    def _put(self, group: int, places: Places) -> None:
        self._room.change(group, places, 1)
        self.places[group], self._cost[group] = places, self._problem.cost_s(group, places)

    def _take(self, group: int) -> Places | None:
        places = self.places[group]
        if places is not None:
            self._room.change(group, places, -1)
            self.places[group], self._cost[group] = None, 0.0
        return places

    def _move(self, group: int) -> bool:
        """Moves the group to a cheaper pair of nodes that has become free."""
        before, cost = self.places[group], self._cost[group]
        self._take(group)
        assert before is not None
        if self._place(group) and self._cost[group] < cost - GAIN_S_MIN:
            return True
        self._take(group)
        self._put(group, before)
        return False

    def _exchange(self, group: int) -> bool:
        """Lets one or several others make room for the group and find places for themselves."""
        return any(self.looks > 0 and self._give_way(group, victims) for victims in self._victims(group))

    def _give_way(self, group: int, victims: Sequence[int]) -> bool:
        """Returns whether this made the plan cheaper, or gave one more group a place. Otherwise nothing has
        changed."""
        homeless, concerned = self.places[group] is None, [group, *victims]
        cost = self._cost[concerned].sum()
        before = {each: self._take(each) for each in concerned}
        placed = all(self._place(each) for each in concerned)
        if placed and (homeless or self._cost[concerned].sum() < cost - GAIN_S_MIN):
            return True
        for each in concerned:
            self._take(each)
        for each, places in before.items():
            if places is not None:
                self._put(each, places)
        return False

    def _victims(self, group: int) -> Iterator[list[int]]:
        """Yields groups that could make room, first one at a time: those on the same node, which share what
        is left when it fails; then those that store over the link by which it sends; then those that store
        where its backup would be fetched faster; smallest first. For a group without a place, then several of
        a kind."""
        problem, places = self._problem, self.places[group]
        works = int(problem.works[group])
        width = 0.0 if places is None else problem.fetch[places]
        better = problem.fetch.diagonal() > width
        beside, storing, others = list[int](), list[int](), list[int]()
        for other in np.argsort(problem.bytes, kind="stable").tolist():
            taken = self.places[other]
            if taken is None or other == group:
                continue
            if problem.works[other] == works:
                beside.append(other)
            elif taken.store == works:
                storing.append(other)
            elif better[taken.store]:
                others.append(other)
        yield from ([victim] for victim in [*beside, *storing, *others][:VICTIMS_MAX])
        if places is None:
            for kind in (storing, beside):
                yield from (kind[-count:] for count in range(2, min(TOGETHER_MAX, len(kind)) + 1))
