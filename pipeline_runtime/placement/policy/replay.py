"""Replays a policy on the past, by what was measured and reported then. Pure.

It assumes that every element was where it is now, with its present rows/s, and that each move took no time:
an element's share of the CPU goes with it to the target. So it tells how often a policy would act, and why,
but not the exact effect.

Nobody knows what an element's latency would have been elsewhere, so only its first move for latency is told.
A window of maintenance is tried as if it had been in that time. Copies at sites that had no node at its
beginning are assumed to have come later (replay_sites.py).

While nothing was measured, control heard no node and policies decided nothing. After that a node is given the
time to be heard, as always.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import ceil, inf
from typing import TypeVar

from pipeline_runtime.placement.links import NO_LATENCIES, Latencies
from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import (
    HOUR_S,
    Code,
    Copied,
    GroupNow,
    Latency,
    Move,
    NodeNow,
    Sample,
    UserAt,
    Verdict,
)
from pipeline_runtime.placement.policy.lasting import Timed
from pipeline_runtime.placement.policy.look import share_of
from pipeline_runtime.placement.policy.replay_sites import CopiesThen
from pipeline_runtime.placement.policy.rules import SAMPLE_S, LatencyAbove, Maintenance, Policy, Sites

DAY_S = 24 * 3600.0
EACH_S = 30.0
"""Samples that are closer to each other are looked at together."""
UP_S = 2.5 * SAMPLE_S
"""A node without a sample for so long was not up."""
HELD = ("refused", "resting", "no-target", "budget", "draining", "empty")


@dataclass(frozen=True)
class Stay:
    """Where a user was until then."""

    user: UserAt
    until_s: float = inf


@dataclass(frozen=True)
class Past:
    """Each is oldest first."""

    samples: Mapping[str, Sequence[Sample]]  # of each node
    latencies: Mapping[str, Sequence[Latency]] = field(default_factory=dict)  # of groups
    stays: Mapping[str, Sequence[Stay]] = field(default_factory=dict)  # of the users of groups


@dataclass(frozen=True)
class ReplayedAct:
    """A move, or a change to copies at a site (without `group`: all copies of `pipeline` there)."""

    at_s: float
    code: Code
    why: str
    group: str | None = None
    origin: str = ""
    target: str | None = None
    site: str | None = None
    pipeline: str | None = None


@dataclass(frozen=True)
class Replay:
    from_s: float | None  # when the first sample was taken; None if there is none
    until_s: float | None
    acts: tuple[ReplayedAct, ...]
    # the reason why nothing was done although the limit was passed -> for how many s
    held: Mapping[Code, float]


def replay(
    policy: Policy,
    past: Past,
    nodes: Sequence[NodeNow],
    groups: Sequence[GroupNow],
    links: Latencies = NO_LATENCIES,
    copied: Sequence[Copied] = (),
    ways: Latencies | None = None,
) -> Replay:
    """What `nodes` report about themselves now is assumed for all of the past, except for samples and whether
    they were up. The same goes for `links` between sites and the `ways` of streams; without `ways`, `links`
    count."""
    times = sorted(sample.at_s for samples in past.samples.values() for sample in samples)
    if not times:
        return Replay(None, None, (), {})
    if isinstance(policy.rule, Maintenance):
        policy = replace(policy, rule=as_if_before(policy.rule, times[-1]))
    world = _World(policy, past, nodes, list(groups), (links, ways), copied)
    found: list[ReplayedAct] = []
    held: dict[Code, float] = {}
    at_s = before_s = -inf
    hearing_since_s = times[0]
    for each_s in times:
        if each_s - before_s > UP_S:
            hearing_since_s = each_s
        before_s = each_s
        if each_s - at_s < EACH_S:
            continue
        step_s, at_s = min(each_s - at_s, EACH_S), each_s
        acts, codes = world.step(at_s, hearing_since_s)
        found += acts
        for code in codes:
            held[code] = held.get(code, 0.0) + step_s
    return Replay(times[0], times[-1], tuple(found), held)


def as_if_before(rule: Maintenance, until_s: float) -> Maintenance:
    """Returns the window moved back by whole days, so that it was over by `until_s`. A window longer than a
    day had begun to empty the node by then."""
    leaves_s = rule.begins.timestamp() - rule.lead_minutes * 60
    lasts_s = (rule.lead_minutes + rule.minutes) * 60
    days = ceil((leaves_s + (lasts_s if lasts_s <= DAY_S else 0) - until_s) / DAY_S)
    return rule.model_copy(update={"begins": rule.begins - timedelta(days=days)})


T = TypeVar("T", bound=Timed)


def _add(seen: deque[T], each: T) -> None:
    """Keeps an hour, as far back as control looks."""
    seen.append(each)
    while seen[0].at_s < each.at_s - HOUR_S:
        seen.popleft()


def _until(waiting: deque[T], now_s: float) -> Iterable[T]:
    while waiting and waiting[0].at_s <= now_s:
        yield waiting.popleft()


class _World:
    def __init__(
        self,
        policy: Policy,
        past: Past,
        nodes: Sequence[NodeNow],
        groups: list[GroupNow],
        lines: tuple[Latencies, Latencies | None],
        copied: Sequence[Copied],
    ) -> None:
        self._policy = policy
        self._links, self._ways = lines
        self._nodes = {node.name: node for node in nodes}
        self._moves: list[Move] = []
        # CPU that moves brought; may be negative
        self._came: dict[str, float] = dict.fromkeys(self._nodes, 0.0)
        self._samples = {name: deque(each) for name, each in past.samples.items() if name in self._nodes}
        self._latencies = {id: deque(each) for id, each in past.latencies.items()}
        self._stays = {id: deque(each) for id, each in past.stays.items()}
        self._seen: dict[str, deque[Sample]] = {name: deque() for name in self._nodes}
        self._late: dict[str, deque[Latency]] = {id: deque() for id in past.latencies}
        began_s = {name: each[0].at_s for name, each in self._samples.items() if each}
        self._measured = began_s.keys()
        first_s = min(began_s.values(), default=0.0)
        there = {self._nodes[name].site for name, at_s in began_s.items() if at_s - first_s <= UP_S}
        later = {self._nodes[name].site for name in began_s} - there
        self._copies = CopiesThen(copied, later)
        self._groups = self._copies.begin(groups)

    def step(self, now_s: float, hearing_since_s: float) -> tuple[list[ReplayedAct], set[Code]]:
        self._moves = [move for move in self._moves if now_s - move.at_s < HOUR_S]
        nodes = self._nodes_at(now_s, hearing_since_s)
        groups = [self._group_at(group, now_s) for group in self._groups]
        verdicts = evaluate(
            [self._policy],
            nodes,
            self._copies.with_refuges(groups, nodes),
            self._moves,
            now_s,
            links=self._links,
            copied=self._copies.now(),
            changes=self._copies.changes_at(now_s),
            ways=self._ways,
        )
        found = []
        for verdict in verdicts:
            if verdict.code in ("move", "restore") and verdict.group is not None and verdict.target:
                self._move(verdict.group, verdict.target, now_s)
            elif verdict.code in ("copy", "take-out"):
                self._groups = self._copies.change(verdict, self._groups, nodes, now_s)
            else:
                continue
            found.append(_act(verdict, now_s))
        acted = {(act.origin, act.site) for act in found}
        return found, {v.code for v in verdicts if self._held(v) and (v.node, v.site) not in acted}

    def _held(self, verdict: Verdict) -> bool:
        """Returns whether something prevented what the policy would have done. That copies wait may be
        intended."""
        rule = self._policy.rule
        waits = verdict.code == "waits" and isinstance(rule, Sites) and rule.gone != "wait"
        return waits or verdict.code in HELD

    def _nodes_at(self, now_s: float, hearing_since_s: float) -> list[NodeNow]:
        found = []
        for name, node in self._nodes.items():
            for sample in _until(self._samples.get(name, deque()), now_s):
                if sample.cpu_ratio is not None:
                    would_be = min(1.0, max(0.0, sample.cpu_ratio + self._came[name]))
                    sample = replace(sample, cpu_ratio=would_be)
                _add(self._seen[name], sample)
            seen = list(self._seen[name])
            # For a node without any sample, it is known when it was heard last.
            seen_s = seen[-1].at_s if seen else node.seen_s if name not in self._measured else None
            up = now_s - max(seen_s or 0.0, hearing_since_s) <= UP_S
            found.append(replace(node, samples=seen, up=up, seen_s=seen_s))
        return found

    def _group_at(self, group: GroupNow, now_s: float) -> GroupNow:
        """Returns the group with what was measured of it then, and where its users were."""
        if group.id not in self._late and group.id not in self._stays:
            return group
        for latency in _until(self._latencies.get(group.id, deque()), now_s):
            _add(self._late[group.id], latency)
        stays = self._stays.get(group.id, deque())
        while stays and stays[0].until_s <= now_s:
            stays.popleft()
        users = tuple(stay.user for stay in stays if stay.user.since_s <= now_s < stay.until_s)
        return replace(group, latencies=list(self._late.get(group.id, ())), users=users)

    def _move(self, id: str, target: str, now_s: float) -> None:
        index = next(i for i, group in enumerate(self._groups) if group.id == id)
        group = self._groups[index]
        origin = self._nodes[group.node]
        seen = self._seen[origin.name]
        share = share_of(group, self._groups, (seen[-1].cpu_ratio or 0.0) if seen else 0.0)
        cores = self._nodes[target].cores
        self._came[origin.name] -= share
        self._came[target] += share * (origin.cores / cores if origin.cores and cores else 1.0)
        self._groups[index] = replace(group, node=target)
        if isinstance(self._policy.rule, LatencyAbove):
            self._latencies.pop(id, None)
            self._late.pop(id, None)
        self._moves.append(
            Move(id, origin.name, target, now_s, ended_s=now_s, done=True, policy=self._policy.name)
        )


def _act(verdict: Verdict, now_s: float) -> ReplayedAct:
    return ReplayedAct(
        now_s,
        verdict.code,
        verdict.why,
        verdict.group,
        verdict.node,
        verdict.target,
        verdict.site,
        verdict.pipeline,
    )
