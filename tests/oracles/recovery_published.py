"""The published algorithm for the problem of `placement/recovery.py`, step by step as printed ("Algorithm 1,
combination decision algorithm"; the reference stands there). Fogline's own algorithm is measured against it.

The most urgent groups come first. Phase 1 gives each group one node that both stores its backup and takes it
over: the nearest by number of links, among the nodes that the backup can still be sent to and that have the
CPU. Phase 2 looks at the groups that are left. It gives each a node that stores and a node that takes over:
the pair with the widest way between them. As printed, phase 2 does not check that the backup can be sent to
the node that stores; with `tested` it does. Neither phase checks that what several groups fetch at once fits
on the links; `recovery_faults.faults` finds that.
"""

from __future__ import annotations

import numpy as np

from pipeline_runtime.placement.recovery import Places, RecoveryProblem


def plan_published(problem: RecoveryProblem, *, tested: bool = False) -> dict[str, Places | None]:
    return _Published(problem, tested).plan()


class _Published:
    def __init__(self, problem: RecoveryProblem, tested: bool) -> None:
        self._problem = problem
        self._tested = tested
        self._left = problem.capacity.copy()  # U(e): what of each link is not given away
        n = len(problem.nodes)
        self._hops = (problem.ways < len(problem.links)).sum(axis=2)  # (n, n): how many links a way has
        self._given = np.zeros((n, n))  # [f, j]: CPU of the groups on f that are to be redeployed to j

    def plan(self) -> dict[str, Places | None]:
        groups = self._problem.groups
        places: dict[str, Places | None] = {group.name: None for group in groups}
        by_latency = sorted(range(len(groups)), key=lambda number: (groups[number].latency_ms, number))
        for choose in (self._nearest, self._widest):
            for number in by_latency:
                if places[groups[number].name] is None:
                    places[groups[number].name] = self._give(number, choose(number))
        return places

    def _nearest(self, group: int) -> Places | None:
        works = self._problem.works[group]
        able = self._can_store(group) & self._has_cpu(group)
        if not able.any():
            return None
        hops = np.where(able, self._hops[works], np.inf)
        node = int(hops.argmin())
        return Places(node, node)

    def _widest(self, group: int) -> Places | None:
        works = self._problem.works[group]
        storing = self._can_store(group) if self._tested else np.ones(len(self._problem.nodes), bool)
        storing[works] = False
        able = storing[:, None] & self._has_cpu(group)[None, :]
        np.fill_diagonal(able, False)
        if not able.any():
            return None
        width = np.where(able, self._left[self._problem.ways].min(axis=2), -np.inf)
        store, redeploy = np.unravel_index(int(width.argmax()), width.shape)
        return Places(int(store), int(redeploy))

    def _can_store(self, group: int) -> np.ndarray:
        works = self._problem.works[group]
        able: np.ndarray = self._left[self._problem.ways[works]].min(axis=1) >= self._problem.rate[group]
        able[works] = False
        return able

    def _has_cpu(self, group: int) -> np.ndarray:
        """CheckCPU: only groups of the same node are redeployed together, since one node fails at a time."""
        works = self._problem.works[group]
        able: np.ndarray = self._given[works] + self._problem.cpu[group] <= self._problem.spare
        able[works] = False
        return able

    def _give(self, group: int, places: Places | None) -> Places | None:
        if places is not None:
            works = self._problem.works[group]
            np.subtract.at(self._left, self._problem.ways[works, places.store], self._problem.rate[group])
            self._given[works, places.redeploy] += self._problem.cpu[group]
        return places
