"""Empties a node or a site before a maintenance time, and keeps it empty until the end of that time.

It goes by the clock alone, so nothing can flap. Only a target's CPU counts, as for groups that leave a
battery; when all nodes are busy, the least busy one is taken. From its lead time on, a window closes the node
for everything, also for moves by other policies and people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor

from pipeline_runtime.placement.policy.facts import NodeNow, Verdict
from pipeline_runtime.placement.policy.look import SETTLE_S, Leaving, Look
from pipeline_runtime.placement.policy.rules import WEEK_S, Maintenance, Policy


@dataclass(frozen=True)
class Window:
    """In s since the epoch. The node takes nothing from `leaves_s` to `ends_s`."""

    leaves_s: float
    begins_s: float
    ends_s: float


def window(rule: Maintenance, now_s: float) -> Window | None:
    """Returns the window that is now, or the next one, or None if there is none any more."""
    begins_s, lasts_s = rule.begins.timestamp(), rule.minutes * 60.0
    if now_s >= begins_s + lasts_s:
        if not rule.weekly:
            return None
        begins_s += WEEK_S * (floor((now_s - begins_s - lasts_s) / WEEK_S) + 1)
    return Window(begins_s - rule.lead_minutes * 60.0, begins_s, begins_s + lasts_s)


def concerns(rule: Maintenance, node: NodeNow) -> bool:
    return rule.name == (node.name if rule.of == "node" else node.site)


def closed(policies: Iterable[Policy], nodes: Sequence[NodeNow], now_s: float) -> dict[str, float]:
    """Returns node -> until when it takes nothing new, for nodes that take nothing now."""
    found: dict[str, float] = {}
    for policy in policies:
        if not isinstance(policy.rule, Maintenance):
            continue
        at = window(policy.rule, now_s)
        if at is None or now_s < at.leaves_s:
            continue
        for node in nodes:
            if concerns(policy.rule, node):
                found[node.name] = max(at.ends_s, found.get(node.name, 0.0))
    return found


def verdicts(look: Look, policy: Policy, rule: Maintenance, node: NodeNow) -> list[Verdict]:
    """Returns a verdict on the node, or on each of its groups that was considered. A node that the policy is
    not about has none."""
    if not concerns(rule, node):
        return []
    at = window(rule, look.now_s)
    if at is None:
        ended_s = rule.begins.timestamp() + rule.minutes * 60
        over = f"The maintenance of {node.name} was over at {utc(ended_s)}."
        return [Verdict(policy.name, node.name, "calm", over)]
    because = f"{node.name} is to be empty from {utc(at.begins_s)} to {utc(at.ends_s)}"
    if look.now_s < at.leaves_s:
        later = f"{because}; what it runs leaves it from {utc(at.leaves_s)} on."
        return [Verdict(policy.name, node.name, "calm", later)]
    held = look.holds_back(node, because)
    if held is not None:
        return [Verdict(policy.name, node.name, *held)]
    return look.leave(policy, node, Leaving(because, SETTLE_S, all_of_it=True, cpu_most=look.cpu_most))


def utc(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"
