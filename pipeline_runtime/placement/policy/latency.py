"""Moves an element that takes longer than it may: nearer to its inputs, or to a less busy node.

The measure is the 95th percentile, over the newest 200 batches of the group with output, of the time from the
arrival of a batch's first row to the commit of its output. It stays while there is no new output, so nothing
is known about an element without rows.

A node is better when the way to it from the nodes of the group's inputs is shorter. It is also better when
that way is not longer and its CPU stays MARGIN under the CPU of the group's node. Moving back would undo
either, so nothing moves back and forth, and a group that was moved rests as always.
"""

from __future__ import annotations

from math import inf

from pipeline_runtime.placement.constraints import percent
from pipeline_runtime.placement.links import farthest_ms
from pipeline_runtime.placement.policy.facts import GAP_S, Code, GroupNow, NodeNow, Verdict, crowded
from pipeline_runtime.placement.policy.lasting import NEVER_S, beyond_since, so_far
from pipeline_runtime.placement.policy.look import CPU_MOST, SETTLE_S, Choice, Look, mean
from pipeline_runtime.placement.policy.rules import MARGIN, LatencyAbove, Policy

NEARER_MS = 1.0
"""A way that is shorter by less than this, or by less than MARGIN of it, is not shorter, since measurements
vary."""


def verdicts(look: Look, policy: Policy, rule: LatencyAbove) -> list[Verdict]:
    """Returns a verdict on each group that the policy is about."""
    found = []
    for group in look.groups:
        if rule.concerns(group.pipeline, group.elements):
            found.append(_of(look, policy, rule, group))
    return found


def _of(look: Look, policy: Policy, rule: LatencyAbove, group: GroupNow) -> Verdict:
    def says(code: Code, why: str) -> Verdict:
        return Verdict(policy.name, group.node, code, why, group.id)

    newest = group.latencies[-1] if group.latencies else None
    if newest is None or look.now_s - newest.at_s > GAP_S or newest.ms is None:
        return says("unknown", f"{group.title} puts nothing out now, so nothing is known of its latency.")
    ended = [move.ended_s for move in look.moves if move.group == group.id and move.ended_s is not None]
    after_s = max(ended, default=NEVER_S)
    since, counts = beyond_since(rule, group.latencies, lambda each: each.ms, after_s)
    if not counts and since is None:
        return says("calm", f"95 % of the batches of {group.title} take {newest.ms:.0f} ms at most.")
    beyond = f"5 % of the batches of {group.title} have taken more than {rule.ms} ms"
    if not counts:
        return says("not-yet", f"{beyond} for {so_far(rule, since, newest)}.")
    target_ms = group.latency_ms_target
    if target_ms is not None and target_ms > rule.ms and newest.ms <= target_ms * (1 + MARGIN):
        why = f"its latency target is {target_ms} ms, which it would keep to anywhere; give it a shorter one"
        return says("no-target", f"{beyond}; {why}.")
    origin = next((node for node in look.nodes if node.name == group.node), None)
    if origin is None or not look.is_heard(origin):
        return says("unknown", f"Nothing was heard of {group.node} in the last {GAP_S:.0f} s.")
    held = look.holds_back(origin, beyond)
    if held is not None:
        return says(*held)
    window_s = max(rule.for_s, SETTLE_S)
    return look.consider(policy, group, beyond, lambda: _choose(look, origin, group, window_s))


def _choose(look: Look, origin: NodeNow, group: GroupNow, window_s: float) -> Choice:
    """Returns the node nearest to its inputs that is better and has room; among equals, the least busy."""
    share = look.share(group, origin, window_s)
    here_ms, here_cpu = way_ms(look, group, origin), mean(look.cpu(origin, window_s))
    most = min(look.cpu_most, CPU_MOST)
    fit: list[tuple[float, float, str]] = []
    reasons = []
    for node in look.nodes:
        if node.name == origin.name:
            continue
        there_ms = way_ms(look, group, node)
        would_be = look.would_be(node, origin, share, window_s)
        reason = look.unfit(node, window_s, group=group) or look.not_apart(group, node.name)
        reason = reason or crowded(would_be, most)
        nearer = there_ms < min(here_ms - NEARER_MS, here_ms * (1 - MARGIN))
        calmer = there_ms <= here_ms < inf and would_be <= here_cpu - MARGIN
        if reason is None and not nearer and not calmer:
            reason = (
                "is not reached by what it reads" if there_ms == inf else "is neither nearer nor less busy"
            )
        if reason is None:
            fit.append((there_ms, would_be, node.name))
        else:
            reasons.append(f"{node.name} {reason}")
    if not fit:
        others = ", ".join(reasons) or "there is no other node"
        return None, f"{group.title} would be no better anywhere else: {others}"
    there_ms, would_be, name = min(fit, key=lambda each: (each[2] != look.advised.get(group.id), each))
    return name, (
        f"{name} is {_far(there_ms)} from what it reads, and it is {_far(here_ms)} now; {name} would reach"
        f" {percent(would_be)} of its CPU"
    )


def way_ms(look: Look, group: GroupNow, node: NodeNow) -> float:
    """Returns the way from the farthest node of the groups that it reads: 0 when it reads none, inf when a
    way is not known."""
    inputs = {each.node for each in look.groups if each.id in group.inputs}
    sites = {each.site for each in look.nodes if each.name in inputs}
    return farthest_ms(((site, node.site) for site in sites), look.ways)


def _far(way: float) -> str:
    return "not known to be reached" if way == inf else f"{way:.1f} ms away"
