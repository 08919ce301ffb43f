"""Placement: what backup plans cost, what copies near the sources save, and that both lose nothing.

    make bench-placement            QUICK=1 make bench-placement
    PARTS=proof make bench-placement

PARTS: `plans`, `nodes` and `proof`; the first two unless it is set.

plans   backup locations: time, rejected groups and cost of ours, of the published algorithm and of solvers
nodes   one pipeline placed in several ways on real nodes behind slow lines: near_sources.py
proof   sites that come and go, compared with an oracle: sites_proof.py

Plans: each method plans the same installations, one after the other, in this process (CBC in its own); no
service is needed. SIZES ("120x30": groups x nodes), SEEDS, TIGHT (what nodes and links have is divided by
it), LIMIT_S (a solver's time), SOLVED_MAX (0: none), CBC_SIZES and CBC_SEEDS choose what is measured.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import plotly.graph_objects as go

from pipeline_runtime.placement.recovery import Plan, RecoveryProblem, rejected
from pipeline_runtime.placement.recovery_plan import plan_recovery
from tests.benchmarks import near_sources, sites_proof
from tests.benchmarks.harness import QUICK, log, machine, write_results
from tests.benchmarks.recovery_milp import solve_published, solve_tight
from tests.fog import fog
from tests.oracles.recovery_faults import faults, total_s
from tests.oracles.recovery_published import plan_published

Size = tuple[int, int]


def sizes(name: str, otherwise: str) -> list[Size]:
    given = os.environ.get(name, otherwise).split()
    return [(int(groups), int(nodes)) for groups, _, nodes in (size.partition("x") for size in given)]


SIZES = sizes("SIZES", "10x10 30x30" if QUICK else "10x10 30x30 60x30 120x30 2000x200")
SEEDS = int(os.environ.get("SEEDS", "2" if QUICK else "20"))
TIGHT = tuple(float(each) for each in os.environ.get("TIGHT", "1 3").split())
LIMIT_S = float(os.environ.get("LIMIT_S", "20" if QUICK else "60"))
LARGE = 120 * 30  # groups x nodes; beyond it no solver ends within the time, and fewer are planned
SOLVED_MAX = int(os.environ.get("SOLVED_MAX", str(LARGE)))
CBC_SIZES = sizes("CBC_SIZES", "10x10" if QUICK else "10x10 30x30")
CBC_SEEDS = int(os.environ.get("CBC_SEEDS", "1" if QUICK else "3"))
METHODS: dict[str, Callable[[RecoveryProblem], Plan]] = {
    "fogline": plan_recovery,
    "published": plan_published,
    "published, tested": lambda problem: plan_published(problem, tested=True),
}


@dataclass
class Cell:
    """One installation, by one method. `cost_s`: of what has places; `broken`: what does not fit."""

    size: Size
    tight: float
    seed: int
    method: str
    seconds: float
    rejected: int | None
    cost_s: float | None
    broken: int | None
    bound_s: float | None = None
    proven: bool = False

    def row(self) -> dict[str, Any]:
        groups, nodes = self.size
        return {"groups": groups, "nodes": nodes, **{k: v for k, v in vars(self).items() if k != "size"}}


def judged(problem: RecoveryProblem, plan: Plan | None) -> tuple[int | None, float | None, int | None]:
    if plan is None:
        return None, None, None
    return len(rejected(plan)), total_s(problem, plan), len(faults(problem, plan))


def measure(size: Size, tight: float, seed: int) -> list[Cell]:
    problem = fog(*size, seed, tight=tight)
    cells: list[Cell] = []
    for name, method in METHODS.items():
        begun = perf_counter()
        plan = method(problem)
        cells.append(Cell(size, tight, seed, name, perf_counter() - begun, *judged(problem, plan)))
    solvers = []
    if size[0] * size[1] <= SOLVED_MAX:
        solvers.append(("HiGHS", solve_tight))
    if size in CBC_SIZES and seed < CBC_SEEDS:
        solvers.append(("CBC, as published", solve_published))
    for name, solve in solvers:
        found = solve(problem, LIMIT_S)
        count = judged(problem, found.plan)
        bound_s = None if found.infeasible else max(found.bound_s, problem.alone_s().sum())
        proven = found.optimal or found.infeasible
        cells.append(Cell(size, tight, seed, name, found.seconds, *count, bound_s, proven))
    return cells


def summary(cells: list[Cell]) -> list[dict[str, Any]]:
    """Returns a row for each size and method. "over the bound" is the cost, if all groups have places."""
    bounds = {(cell.size, cell.tight, cell.seed): cell.bound_s for cell in cells if cell.method == "HiGHS"}
    rows = []
    for size, tight, method in dict.fromkeys((cell.size, cell.tight, cell.method) for cell in cells):
        found = [cell for cell in cells if (cell.size, cell.tight, cell.method) == (size, tight, method)]
        over = [
            cell.cost_s / bound - 1
            for cell in found
            if cell.cost_s is not None
            and cell.rejected == 0
            and (bound := bounds.get((size, tight, cell.seed))) is not None
        ]
        rows.append(
            {
                "groups x nodes": f"{size[0]} x {size[1]}",
                "tight": tight,
                "method": method,
                "n": len(found),
                "median s": round(median(cell.seconds for cell in found), 4),
                "most s": round(max(cell.seconds for cell in found), 4),
                "rejected": sum(cell.rejected or 0 for cell in found),
                "no plan": sum(cell.rejected is None for cell in found),
                "failures that do not fit": sum(cell.broken or 0 for cell in found),
                "over the bound, median %": round(100 * median(over), 2) if over else None,
                "over the bound, most %": round(100 * max(over), 2) if over else None,
            }
        )
    return rows


def plans() -> int:
    settings = {
        "machine": machine(),
        "sizes": SIZES,
        "seeds": SEEDS,
        "tight": TIGHT,
        "limit_s": LIMIT_S,
    }
    cells: list[Cell] = []
    for size in SIZES:
        for tight in TIGHT:
            for seed in range(SEEDS if size[0] * size[1] <= LARGE else max(1, SEEDS // 4)):
                cells += measure(size, tight, seed)
            for row in summary([cell for cell in cells if (cell.size, cell.tight) == (size, tight)]):
                log("  ".join(f"{name} {value}" for name, value in row.items() if value is not None))
    figure = go.Figure(
        [
            go.Scatter(
                name=method,
                x=[cell.cost_s for cell in cells if cell.method == method],
                y=[cell.seconds for cell in cells if cell.method == method],
                mode="markers",
            )
            for method in dict.fromkeys(cell.method for cell in cells)
        ]
    )
    figure.update_layout(xaxis_title="sum of recoveries, s", yaxis_title="time to plan, s", yaxis_type="log")
    write_results("placement", settings, [cell.row() for cell in cells], figure)
    wrong = [cell for cell in cells if cell.method == "fogline" and cell.broken]
    if wrong:
        log(f"a plan of Fogline's does not hold: {wrong[0].row()}")
    return 1 if wrong else 0


def main() -> int:
    parts = {"plans": plans, "nodes": near_sources.measure, "proof": sites_proof.prove}
    chosen = os.environ.get("PARTS", "plans nodes").split()
    return max([parts[name]() for name in chosen], default=0)


if __name__ == "__main__":
    sys.exit(main())
