"""Spread: no node is much busier than the least busy one. Pack: as few nodes as possible run something.

As long as the load stays, neither moves anything back and forth. Spread: with the group, the target stays
MARGIN under what the origin was at, so to move it back, the origin would have to stay MARGIN under the
target. Pack: elements leave a node that can be emptied, and only go to nodes that run something and are
busier.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from pipeline_runtime.placement.constraints import percent
from pipeline_runtime.placement.policy.facts import GAP_S, Code, GroupNow, NodeNow, Verdict
from pipeline_runtime.placement.policy.look import SETTLE_S, Choice, Leaving, Look, mean
from pipeline_runtime.placement.policy.rules import MARGIN, Pack, Policy, Spread


def spread(look: Look, policy: Policy, rule: Spread, node: NodeNow) -> list[Verdict]:
    """Returns a verdict on the node, or on each of its groups that was considered."""

    def says(code: Code, why: str) -> list[Verdict]:
        return [Verdict(policy.name, node.name, code, why)]

    window_s = max(float(rule.for_s), SETTLE_S)
    own = look.cpu(node, window_s)
    if not look.is_heard(node) or not own:
        return says("unknown", f"Nothing was heard of the CPU of {node.name} in the last {GAP_S:.0f} s.")
    others = {each.name: look.cpu(each, window_s) for each in look.nodes if look.may_take(each, node)}
    least, other = min(((name, cpu) for name, cpu in others.items() if cpu), key=_highest, default=("", []))
    if not other:
        return says("calm", "There is no other node that takes elements.")
    points = f"{rule.difference * 100:.0f} points"
    if own[0] - other[0] <= rule.difference:
        at = f"{percent(own[0])}, that of {least} at {percent(other[0])}"
        return says("calm", f"The CPU of {node.name} is at {at}: the difference is not more than {points}.")
    between = f"more than {points} above that of {least}"
    lasts = min(own) - max(other) > rule.difference and look.covers(node, rule.for_s)
    if not lasts or look.now_s - look.settled_s(node.name) < window_s:
        return says("not-yet", f"The CPU of {node.name} is {between}, but not for {rule.for_s} s yet.")
    because = f"The CPU of {node.name} has been {between}"
    held = look.holds_back(node, because)
    if held is not None:
        return says(*held)
    most = min(look.cpu_most, mean(own) - MARGIN)
    return look.leave(policy, node, Leaving(because, window_s, all_of_it=False, cpu_most=most))


def _highest(each: tuple[str, list[float]]) -> tuple[float, str]:
    return max(each[1]), each[0]


@dataclass(frozen=True)
class _Step:
    group: GroupNow
    target: str
    would_be: float  # the target's CPU with the group


def pack(look: Look, policy: Policy, rule: Pack) -> list[Verdict]:
    """Returns verdicts on each node that runs something, the least busy first, until one is found that can be
    emptied."""
    window_s = max(float(rule.for_s), SETTLE_S)
    running = [node for node in look.nodes if look.on(node.name) and look.is_heard(node)]
    running.sort(key=lambda node: (mean(look.cpu(node, window_s)), node.name))
    found: list[Verdict] = []
    for index, node in enumerate(running):
        verdicts = _emptied(look, policy, rule, node, running[index + 1 :])
        found += verdicts
        if any(each.code != "calm" for each in verdicts):
            break  # only one node at a time
    return found


def _emptied(look: Look, policy: Policy, rule: Pack, node: NodeNow, busier: list[NodeNow]) -> list[Verdict]:
    def says(code: Code, why: str) -> list[Verdict]:
        return [Verdict(policy.name, node.name, code, why)]

    window_s = max(float(rule.for_s), SETTLE_S)
    steps = _plan(look, policy, rule, node, busier, window_s)
    if isinstance(steps, str):
        return says("calm", f"{node.name} is not emptied: {steps}.")
    because = f"All that {node.name} runs fits on nodes that are busier"
    if look.now_s - look.settled_s(node.name) < window_s or not look.covers(node, rule.for_s):
        return says("not-yet", f"{because}, but not for {rule.for_s} s yet.")
    held = look.holds_back(node, because)
    if held is not None:
        return says(*held)
    found = []
    for step in steps:
        found.append(look.consider(policy, step.group, because, lambda step=step: _choice_of(step)))  # type: ignore[misc]
        if found[-1].code in ("move", "budget"):
            break
    return found


def _choice_of(step: _Step) -> Choice:
    return step.target, f"{step.target} has room, it would reach {percent(step.would_be)} of its CPU"


def _plan(
    look: Look, policy: Policy, rule: Pack, node: NodeNow, busier: list[NodeNow], window_s: float
) -> list[_Step] | str:
    """Returns where each of its groups would go, the busiest first, each to the node with the least room
    left. Or returns why not all of them find room."""
    most = min(look.cpu_most, rule.target_most)
    fit = [each for each in busier if look.unfit(each, window_s) is None]
    if not fit:
        return "no node that is busier takes anything now"
    at = {each.name: look.would_be(each, node, 0.0, window_s) for each in fit}
    shares = {group.id: look.share(group, node, window_s) for group in look.on(node.name)}
    steps: list[_Step] = []
    for group in sorted(look.on(node.name), key=lambda each: (-shares[each.id], each.id)):
        refusal = look.refusal(policy, group)
        if refusal is not None:
            return f"{group.title} cannot move: {refusal}"
        coming = {each.name: look.share_on(each, node, shares[group.id]) for each in fit}
        apart = {each.name for each in fit if look.not_apart(group, each.name) is not None}
        apart |= {step.target for step in steps if step.group.id in group.apart}
        room = [name for name in at if name not in apart and at[name] + coming[name] <= most]
        if not room:
            but = ", or is to be apart from what it runs" if apart else ""
            return (
                f"{group.title} would bring each other node that is busier above {percent(most)} of its CPU"
                f"{but}"
            )
        advised = look.advised.get(group.id)
        target = max(room, key=lambda name: (inf if name == advised else at[name], name))
        at[target] += coming[target]
        steps.append(_Step(group, target, at[target]))
    return steps
