"""Keeps an element on the node that is nearest to its user.

Somebody reports where the user is, as a site. The distance is the latency one way from there to the site of a
node, and 0 within a site. Nodes whose distances differ by no more than NEAR_MS are equally near, as for a
deployment. So nothing moves back and forth between neighbours while their latencies vary by less. A user who
walks back and forth is followed only after staying for `for_s`.

Elements that read only from this one may go along. Elements that read from elsewhere as well do not, since
their other inputs may follow other users.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from pipeline_runtime.placement.choose import NEAR_MS
from pipeline_runtime.placement.constraints import percent
from pipeline_runtime.placement.links import farthest_ms
from pipeline_runtime.placement.policy.facts import (
    GAP_S,
    Code,
    GroupNow,
    NodeNow,
    UserAt,
    Verdict,
)
from pipeline_runtime.placement.policy.look import SETTLE_S, Choice, Look
from pipeline_runtime.placement.policy.rules import FollowUser, Policy


def verdicts(look: Look, policy: Policy, rule: FollowUser) -> list[Verdict]:
    """Returns verdicts on the element's group, and on each that goes along."""
    first = _first(rule, look.groups)
    if first is None:
        return []
    user = _user(rule, first)
    if user is None:
        why = f"Fogline does not know where the user of {first.title} is."
        return [Verdict(policy.name, first.node, "unknown", why, first.id)]
    return [_of(look, policy, rule, user, each) for each in _all(rule, first, look.groups)]


def kept(policies: Iterable[Policy], groups: Sequence[GroupNow]) -> dict[str, str]:
    """Returns group -> why policies that balance leave it alone, for groups that follow a user."""
    found: dict[str, str] = {}
    for policy in policies:
        rule = policy.rule
        first = _first(rule, groups) if isinstance(rule, FollowUser) else None
        if isinstance(rule, FollowUser) and first is not None and _user(rule, first) is not None:
            why = f"it follows its user, by {policy.name}"
            found |= {each.id: why for each in _all(rule, first, groups)}
    return found


def _first(rule: FollowUser, groups: Sequence[GroupNow]) -> GroupNow | None:
    return next((each for each in groups if rule.concerns(each.pipeline, each.elements)), None)


def _user(rule: FollowUser, group: GroupNow) -> UserAt | None:
    return next((each for each in group.users if each.element == rule.element), None)


def _all(rule: FollowUser, first: GroupNow, groups: Sequence[GroupNow]) -> list[GroupNow]:
    """Returns the element's group and those that go along, each after all groups that it reads."""
    found = {first.id: first}
    if not rule.along:
        return [first]
    others = [each for each in groups if each.inputs and not each.pinned]
    while ready := [each for each in others if each.id not in found and found.keys() >= set(each.inputs)]:
        found |= {each.id: each for each in ready}
    return list(found.values())


def _of(look: Look, policy: Policy, rule: FollowUser, user: UserAt, group: GroupNow) -> Verdict:
    def says(code: Code, why: str) -> Verdict:
        return Verdict(policy.name, group.node, code, why, group.id)

    origin = next((node for node in look.nodes if node.name == group.node), None)
    if origin is None or not look.is_heard(origin):
        return says("unknown", f"Nothing was heard of {group.node} in the last {GAP_S:.0f} s.")
    here_ms = _way_ms(look, user, origin)
    if not any(_is_nearer(_way_ms(look, user, node), here_ms) for node in look.nodes):
        if here_ms == inf:
            return says("unknown", f"It is not known how far {user.site} is from any node.")
        far = f"{group.title} on {origin.name} is {here_ms:.1f} ms away from its user at {user.site}"
        return says("calm", f"{far}, and no node is nearer by more than {NEAR_MS:.0f} ms.")
    been = f"The user of {group.title} has been at {user.site}"
    lasted_s = max(0.0, look.now_s - user.since_s)
    if lasted_s < rule.for_s:
        return says("not-yet", f"{been} for {lasted_s:.0f} s of {rule.for_s} s.")
    held = look.holds_back(origin, been)
    if held is not None:
        return says(*held)
    # A user who walks on is followed on. The group rests as long as usual only after a move for another
    # reason.
    rest_s = max(float(rule.for_s), SETTLE_S)
    return look.consider(
        policy, group, been, lambda: _choose(look, user, origin, group, here_ms), own_rest_s=rest_s
    )


def _choose(look: Look, user: UserAt, origin: NodeNow, group: GroupNow, here_ms: float) -> Choice:
    """Returns the node nearest to the user that is nearer and has room; among equals, the least busy."""
    ways = {node.name: _way_ms(look, user, node) for node in look.nodes}
    nearer = [node for node in look.nodes if _is_nearer(ways[node.name], here_ms)]
    # A group follows its user whatever other groups of its pipeline run there.
    room, reasons = look.room(origin, group, nearer, keeps_apart=False)
    if not room:
        return None, f"No node that is nearer to {user.site} can take {group.title}: {', '.join(reasons)}"
    nearest_ms = min(ways[name] for name in room)
    alike = [name for name in room if ways[name] <= nearest_ms + NEAR_MS]
    name = min(alike, key=lambda name: (name != look.advised.get(group.id), room[name], ways[name], name))
    now = "the present distance is not known" if here_ms == inf else f"it is {here_ms:.1f} ms away now"
    there = f"{name} is {ways[name]:.1f} ms away from there, {now}"
    return name, f"{there}; {name} would reach {percent(room[name])} of its CPU"


def _way_ms(look: Look, user: UserAt, node: NodeNow) -> float:
    """Returns the latency one way from the user, or inf if it is not known."""
    return farthest_ms([(user.site, node.site)], look.links)


def _is_nearer(there_ms: float, here_ms: float) -> bool:
    return there_ms + NEAR_MS < here_ms
