"""The problem of `placement.recovery` as a mixed-integer program, in two formulations: what plans are
measured by.

`solve_tight`, by HiGHS: x[t,i] and y[t,j] are binary; p[t,i,j] >= 0 with sum_j p = x[t,i] and
sum_i p = y[t,j], so that the relaxation is as good as choosing pairs. `solve_published`, by CBC, the solver
of the paper: the product x[t,i] y[t,j] becomes z[t,i,j] >= x + y - 1, which says nothing while both are
halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pulp
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from pipeline_runtime.placement.recovery import Places, RecoveryProblem

GAP = 1e-4
Term = tuple[int, float]  # a variable's number and its factor


@dataclass(frozen=True)
class Solution:
    plan: dict[str, Places | None] | None  # None when none was found in time
    optimal: bool
    infeasible: bool  # no plan has a place for every group
    bound_s: float  # no plan that has a place for every group costs less
    seconds: float


class _Program:
    """Variables x, y and z (p) in one row, and the constraints that both formulations have."""

    def __init__(self, problem: RecoveryProblem) -> None:
        self.problem = problem
        self.m, self.n = len(problem.groups), len(problem.nodes)
        self.of = [
            [node for node in range(self.n) if node != problem.works[group]] for group in range(self.m)
        ]

    def x(self, group: int, node: int) -> int:
        return group * self.n + node

    def y(self, group: int, node: int) -> int:
        return (self.m + group) * self.n + node

    def z(self, group: int, store: int, redeploy: int) -> int:
        return 2 * self.m * self.n + (group * self.n + store) * self.n + redeploy

    @property
    def variables(self) -> int:
        return self.m * self.n * (2 + self.n)

    def costs(self) -> np.ndarray:
        found = np.zeros(self.variables)
        found[2 * self.m * self.n :] = (self.problem.bytes[:, None, None] / self.problem.fetch).ravel()
        return found

    def chosen_once(self) -> Iterator[list[Term]]:
        """Each sums up to 1."""
        for group, nodes in enumerate(self.of):
            yield [(self.x(group, node), 1.0) for node in nodes]
            yield [(self.y(group, node), 1.0) for node in nodes]

    def limits(self) -> Iterator[tuple[list[Term], float]]:
        """Terms that sum up to no more than what stands beside them."""
        problem = self.problem
        on = [np.flatnonzero(problem.works == node).tolist() for node in range(self.n)]
        for failed, groups in enumerate(on):
            for node in range(self.n):
                if groups and node != failed:
                    cpu = [(self.y(group, node), float(problem.cpu[group])) for group in groups]
                    yield cpu, float(problem.spare[node])
        for link in range(len(problem.links)):
            used = (problem.ways == link).any(axis=2)
            stores = [
                [
                    (self.x(group, node), float(problem.rate[group]))
                    for node in self.of[group]
                    if used[problem.works[group], node]
                ]
                for group in range(self.m)
            ]
            capacity = float(problem.capacity[link])
            yield [term for terms in stores for term in terms], capacity
            for groups in filter(None, on):
                fetched = [
                    (self.z(group, int(i), int(j)), float(problem.fetch[i, j]))
                    for group in groups
                    for i, j in np.argwhere(used)
                    if i != j and problem.works[group] not in (i, j)
                ]
                others = [term for group in range(self.m) if group not in groups for term in stores[group]]
                if fetched:
                    yield [*others, *fetched], capacity

    def plan(self, values: np.ndarray) -> dict[str, Places | None]:
        def chosen(number: int) -> int:
            return int(values[number * self.n : (number + 1) * self.n].argmax())

        return {
            group.name: Places(chosen(at), chosen(self.m + at))
            for at, group in enumerate(self.problem.groups)
        }


def solve_tight(problem: RecoveryProblem, limit_s: float) -> Solution:
    program = _Program(problem)
    rows: list[tuple[list[Term], float, float]] = [(terms, 1.0, 1.0) for terms in program.chosen_once()]
    rows += [(terms, -np.inf, limit) for terms, limit in program.limits()]
    for group, nodes in enumerate(program.of):
        for node in nodes:
            as_store = [(program.z(group, node, other), 1.0) for other in nodes]
            as_redeploy = [(program.z(group, other, node), 1.0) for other in nodes]
            rows.append(([*as_store, (program.x(group, node), -1.0)], 0.0, 0.0))
            rows.append(([*as_redeploy, (program.y(group, node), -1.0)], 0.0, 0.0))
    upper = np.zeros(program.variables)
    for group, nodes in enumerate(program.of):
        for node in nodes:
            upper[[program.x(group, node), program.y(group, node)]] = 1.0
            upper[[program.z(group, node, other) for other in nodes]] = 1.0
    numbers = [number for number, (terms, _, _) in enumerate(rows) for _ in terms]
    matrix = coo_array(
        (
            [factor for terms, _, _ in rows for _, factor in terms],
            (numbers, [variable for terms, _, _ in rows for variable, _ in terms]),
        ),
        shape=(len(rows), program.variables),
    ).tocsr()
    whole = np.zeros(program.variables)
    whole[: 2 * program.m * program.n] = 1
    begun = perf_counter()
    found = milp(
        program.costs(),
        integrality=whole,
        bounds=Bounds(0.0, upper),
        constraints=LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows]),
        options={"time_limit": limit_s, "mip_rel_gap": GAP},
    )
    seconds = perf_counter() - begun
    plan = None if found.x is None else program.plan(found.x)
    bound_s = found.mip_dual_bound if found.mip_dual_bound is not None else 0.0
    return Solution(plan, found.status == 0, found.status == 2, float(bound_s), seconds)


def solve_published(problem: RecoveryProblem, limit_s: float) -> Solution:
    """`seconds`: of CBC alone, without writing the program down."""
    program = _Program(problem)
    costs = program.costs()
    model = pulp.LpProblem("backup_locations", pulp.LpMinimize)
    variables: dict[int, pulp.LpVariable] = {}
    for group, nodes in enumerate(program.of):
        for node in nodes:
            for number in (program.x(group, node), program.y(group, node)):
                variables[number] = pulp.LpVariable(f"b{number}", cat="Binary")
            for other in nodes:
                number = program.z(group, node, other)
                variables[number] = pulp.LpVariable(f"z{number}", 0, 1)
    model += pulp.LpAffineExpression([(variables[at], costs[at]) for at in variables if costs[at]])

    def total(terms: list[Term]) -> pulp.LpAffineExpression:
        return pulp.LpAffineExpression([(variables[number], factor) for number, factor in terms])

    for terms in program.chosen_once():
        model += total(terms) == 1
    for terms, limit in program.limits():
        model += total(terms) <= limit
    for group, nodes in enumerate(program.of):
        for i in nodes:
            for j in nodes:
                both = [
                    (program.z(group, i, j), 1.0),
                    (program.x(group, i), -1.0),
                    (program.y(group, j), -1.0),
                ]
                model += total(both) >= -1
    begun = perf_counter()
    status = model.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=limit_s, gapRel=GAP, threads=1))
    seconds = perf_counter() - begun
    values = np.zeros(program.variables)
    for number, variable in variables.items():
        values[number] = variable.value() or 0.0
    found = model.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    proven = model.sol_status == pulp.LpSolutionOptimal and seconds < limit_s
    plan = program.plan(values) if found else None
    return Solution(plan, proven, status == pulp.LpStatusInfeasible, 0.0, seconds)
