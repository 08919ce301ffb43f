"""Evaluates all policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pipeline_runtime.placement.links import NO_LATENCIES, Latencies
from pipeline_runtime.placement.policy import apart, balance, follow, latency, maintenance, sites, threshold
from pipeline_runtime.placement.policy.facts import Copied, CopyChange, GroupNow, Move, NodeNow, Verdict
from pipeline_runtime.placement.policy.look import Look
from pipeline_runtime.placement.policy.rules import (
    Apart,
    CpuAbove,
    FollowUser,
    LatencyAbove,
    Maintenance,
    Pack,
    Policy,
    Sites,
    Spread,
)

NOTHING: Mapping[str, str] = MappingProxyType({})
ORDER = ("battery", "maintenance", "sites", "follow", "latency", "cpu", "apart", "spread", "pack")
"""The most pressing kind comes first, since a group that it moves is not moved for another reason as well."""


def evaluate(
    policies: Iterable[Policy],
    nodes: Sequence[NodeNow],
    groups: Sequence[GroupNow],
    moves: Sequence[Move],
    now_s: float,
    advised: Mapping[str, str] = NOTHING,
    links: Latencies = NO_LATENCIES,
    copied: Sequence[Copied] = (),
    changes: Sequence[CopyChange] = (),
    ways: Latencies | None = None,
) -> list[Verdict]:
    """Returns what each policy says about each node now.

    `moves` holds those of the last hour, and all that are running. `advised` maps a group to the target of
    the last advice, which stays while it fits, so that advice does not change with every sample. `copied`
    holds pipelines with copies at sites, and `changes` what policies did to them. `links` are the latencies
    between sites; `ways` those of the rows of streams, which go through the broker. Without `ways`, `links`
    count.

    No node has to give up two groups at once, and none has to take two at once because of its neighbours'
    CPU.
    """
    policies = sorted(policies, key=lambda policy: (ORDER.index(policy.rule.kind), policy.name))
    rules = [policy.rule for policy in policies]
    cpu_most = min((rule.target_most for rule in rules if isinstance(rule, CpuAbove)), default=1.0)
    shut = dict.fromkeys(maintenance.closed(policies, nodes, now_s), "is in maintenance")
    look = Look(
        nodes,
        groups,
        list(moves),
        now_s,
        cpu_most,
        advised,
        threshold.weak(policies, nodes) | shut,
        links,
        follow.kept(policies, groups),
        [rule for rule in rules if isinstance(rule, Apart)],
        copied,
        list(changes),
        links if ways is None else ways,
    )
    return [verdict for policy in policies for verdict in _of(look, policy)]


def _of(look: Look, policy: Policy) -> list[Verdict]:
    rule = policy.rule
    if isinstance(rule, LatencyAbove):
        return latency.verdicts(look, policy, rule)
    if isinstance(rule, FollowUser):
        return follow.verdicts(look, policy, rule)
    if isinstance(rule, Apart):
        return apart.verdicts(look, policy, rule)
    if isinstance(rule, Sites):
        return sites.verdicts(look, policy, rule)
    if isinstance(rule, Pack):
        return balance.pack(look, policy, rule)
    if isinstance(rule, Spread):
        return [each for node in look.nodes for each in balance.spread(look, policy, rule, node)]
    if isinstance(rule, Maintenance):
        return [each for node in look.nodes for each in maintenance.verdicts(look, policy, rule, node)]
    return [each for node in look.nodes for each in threshold.verdicts(look, policy, rule, node)]
