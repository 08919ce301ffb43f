"""Moves groups away from a node whose CPU is above a threshold, or whose battery is below one.

Load that flaps around the threshold moves nothing back and forth:

- the CPU has to be above for `for_s` without a break, and the node then counts as hot until it is under
  threshold - MARGIN;
- a move off or onto a node starts that time again there, and such a node takes nothing else meanwhile;
- a target stays under threshold - MARGIN with the new group;
- a group that was moved, by a policy or a person, rests for REST_S; and a policy has a budget of moves per
  hour.

A battery that runs down does not wait for that: its groups leave one after another, within the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pipeline_runtime.placement.constraints import percent
from pipeline_runtime.placement.policy.facts import GAP_S, Code, NodeNow, Sample, Verdict
from pipeline_runtime.placement.policy.lasting import NEVER_S, beyond_since, so_far
from pipeline_runtime.placement.policy.look import SETTLE_S, Leaving, Look
from pipeline_runtime.placement.policy.rules import BatteryBelow, CpuAbove, Policy

Threshold = CpuAbove | BatteryBelow


def verdicts(look: Look, policy: Policy, rule: Threshold, node: NodeNow) -> list[Verdict]:
    """Returns a verdict on the node, or on each of its groups that was considered."""

    def says(code: Code, why: str) -> list[Verdict]:
        return [Verdict(policy.name, node.name, code, why)]

    is_cpu = isinstance(rule, CpuAbove)
    what, side = ("CPU", "above") if is_cpu else ("battery", "below")
    newest = node.samples[-1] if look.is_heard(node) else None
    if newest is None:
        return says("unknown", f"Nothing was heard of {node.name} in the last {GAP_S:.0f} s.")
    value = value_of(rule)(newest)
    if value is None:
        none = "does not say how busy it is" if is_cpu else "has no battery"
        return says("unknown", f"{node.name} {none}.")
    # A move changes the CPU, so it is watched from the start. A battery just goes on running down.
    after_s = look.settled_s(node.name) if is_cpu else NEVER_S
    since, counts = beyond_since(rule, node.samples, value_of(rule), after_s)
    beyond = f"The {what} of {node.name} has been {side} {percent(rule.threshold)}"
    if not counts and since is None:
        return says("calm", f"The {what} of {node.name} is at {percent(value)}.")
    if not counts:
        return says("not-yet", f"{beyond} for {so_far(rule, since, newest)}.")
    held = look.holds_back(node, beyond)
    if held is not None:
        return says(*held)
    window_s = max(rule.for_s, SETTLE_S)
    return look.leave(policy, node, Leaving(beyond, window_s, all_of_it=not is_cpu, cpu_most=look.cpu_most))


def weak(policies: Iterable[Policy], nodes: Iterable[NodeNow]) -> dict[str, str]:
    """Returns node -> why it should take nothing, for nodes whose battery is so low that a new group would
    soon leave again."""
    rules = [policy.rule for policy in policies if isinstance(policy.rule, BatteryBelow)]
    charges = {node.name: node.samples[-1].charge for node in nodes if node.samples}
    return {
        name: f"is on battery itself, at {percent(charge)}"
        for name, charge in charges.items()
        if charge is not None and not all(rule.over(charge) for rule in rules)
    }


def value_of(rule: Threshold) -> Callable[[Sample], float | None]:
    """What it looks at."""
    return (lambda each: each.cpu_ratio) if isinstance(rule, CpuAbove) else (lambda each: each.charge)
