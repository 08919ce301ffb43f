"""Computes the cost of a plan of backups and finds its faults, by the failure of each node in turn.

It shares no code with the module that makes plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline_runtime.placement.recovery import ROUNDING, Plan, RecoveryProblem


def total_s(problem: RecoveryProblem, plan: Plan) -> float:
    """Returns the seconds that all recoveries take together; groups that were rejected count nothing."""
    placed = ((number, plan[group.name]) for number, group in enumerate(problem.groups))
    return sum(problem.cost_s(number, places) for number, places in placed if places is not None)


def faults(problem: RecoveryProblem, plan: Plan) -> list[str]:
    """Returns a sentence for each limit of the problem that the plan breaks."""
    found: list[str] = []
    placed = {number: plan[group.name] for number, group in enumerate(problem.groups)}
    for number, places in placed.items():
        if places is None:
            continue
        group = problem.groups[number]
        if problem.works[number] in places:
            found.append(f"{group.name} would be lost with the node that it runs on")
        elif problem.nodes[places.store].name in group.no_store:
            found.append(f"{group.name} may not be stored on {problem.nodes[places.store].name}")
        elif problem.nodes[places.redeploy].name in group.no_redeploy:
            found.append(f"{group.name} may not go on on {problem.nodes[places.redeploy].name}")
    found += _full_disks(problem, plan)
    for failed in (None, *range(len(problem.nodes))):
        when = "nothing has failed" if failed is None else f"{problem.nodes[failed].name} has failed"
        traffic, cpu = [0.0] * len(problem.links), [0.0] * len(problem.nodes)
        for number, places in placed.items():
            if places is None:
                continue
            works = int(problem.works[number])
            if works != failed:
                for link in _links(problem, works, places.store):
                    traffic[link] += float(problem.rate[number])
            else:
                for link in _links(problem, *places):
                    traffic[link] += float(problem.fetch[places])
                cpu[places.redeploy] += float(problem.cpu[number])
        found += [
            f"the link {link.a} - {link.b} carries {used:.0f} of {link.bytes_per_s:.0f} bytes/s when {when}"
            for link, used in zip(problem.links, traffic, strict=True)
            if used > link.bytes_per_s * (1 + ROUNDING)
        ]
        found += [
            f"{node.name} runs {used:.2f} cores more than its {node.cpu_spare:.2f} when {when}"
            for node, used in zip(problem.nodes, cpu, strict=True)
            if used > node.cpu_spare * (1 + ROUNDING)
        ]
    return found


def _full_disks(problem: RecoveryProblem, plan: Plan) -> list[str]:
    taken = dict.fromkeys(problem.index, 0.0)
    for group in problem.groups:
        places = plan[group.name]
        if places is not None and group.held_by != problem.nodes[places.store].name:
            taken[problem.nodes[places.store].name] += group.backup_bytes
    return [
        f"{node.name} gets {taken[node.name]:.0f} bytes and has room for {node.disk_spare_bytes:.0f}"
        for node in problem.nodes
        if taken[node.name] > node.disk_spare_bytes * (1 + ROUNDING)
    ]


def _links(problem: RecoveryProblem, origin: int, target: int) -> Iterable[int]:
    return (int(link) for link in problem.ways[origin, target] if link < len(problem.links))
