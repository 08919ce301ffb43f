"""Keeps the number of groups of one pipeline on a node low, so that the node's failure takes few of them.

Nothing moves back and forth. A group goes only to a node that stays within the limit with it. So each move
makes the excess one smaller. When no node has room within the limit, all groups stay. Policies of CPU, of
latency and of spreading keep to the limit as well.
"""

from __future__ import annotations

from functools import partial

from pipeline_runtime.placement.constraints import percent
from pipeline_runtime.placement.policy.facts import GAP_S, Code, GroupNow, NodeNow, Verdict
from pipeline_runtime.placement.policy.look import Choice, Look
from pipeline_runtime.placement.policy.rules import Apart, Policy


def verdicts(look: Look, policy: Policy, rule: Apart) -> list[Verdict]:
    """Returns verdicts on each node that runs groups of the pipeline, or on its groups that were
    considered."""
    own = look.of_pipeline(rule.pipeline)
    found: list[Verdict] = []
    for node in look.nodes:
        there = [group for group in own if group.node == node.name]
        if there:
            found += _of(look, policy, rule, node, there, len(own))
    return found


def _of(
    look: Look, policy: Policy, rule: Apart, node: NodeNow, there: list[GroupNow], all_of_it: int
) -> list[Verdict]:
    def says(code: Code, why: str) -> list[Verdict]:
        return [Verdict(policy.name, node.name, code, why)]

    most = rule.limit(all_of_it)
    runs = f"{node.name} runs {len(there)} of the {all_of_it} groups of {rule.pipeline}"
    if len(there) <= most:
        return says("calm", f"{runs}, and at most {most} may run on one node.")
    because = f"{runs}, more than {most}"
    if not look.is_heard(node):
        return says("unknown", f"{because}, but nothing was heard of it in the last {GAP_S:.0f} s.")
    held = look.holds_back(node, because)
    if held is not None:
        return says(*held)
    found = []
    for group in sorted(there, key=lambda each: (each.id not in look.advised, each.pinned, each.state_bytes)):
        found.append(look.consider(policy, group, because, partial(_choose, look, node, group)))
        if found[-1].code in ("move", "budget"):
            break
    return found


def _choose(look: Look, origin: NodeNow, group: GroupNow) -> Choice:
    """Returns the node that runs the fewest groups of its pipeline; among equals, the least busy."""
    others = [node for node in look.nodes if node.name != origin.name]
    room, reasons = look.room(origin, group, others, keeps_apart=True)
    if not room:
        return None, f"No node can take {group.title}: {', '.join(reasons) or 'there is no other node'}"
    has = {node.name: len(look.come(node, group.pipeline)) for node in others}
    name = min(room, key=lambda name: (name != look.advised.get(group.id), has[name], room[name], name))
    of_them = f"{name} has {has[name] or 'none'} of them"
    return name, f"{of_them}, and would reach {percent(room[name])} of its CPU with {group.title}"
