"""What a policy would have moved in the past, by what was measured then. Pure.

As if every element had been where it is now, with the rows/s that it has now, and each move had taken no
time: with an element its share of the CPU goes to its target. So it says how often a policy would act, and
why; not what would have come of it to the last percent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import HOUR_S, Code, GroupNow, Move, NodeNow, Sample
from pipeline_runtime.placement.policy.look import share_of
from pipeline_runtime.placement.policy.rules import Policy

EACH_S = 30.0
"""Samples that are nearer to each other are looked at together."""


@dataclass(frozen=True)
class ReplayedMove:
    at_s: float
    group: str
    origin: str
    target: str
    why: str


@dataclass(frozen=True)
class Replay:
    from_s: float | None  # when the first sample was taken; None: there is none
    until_s: float | None
    moves: tuple[ReplayedMove, ...]
    held: Mapping[Code, float]  # why nothing was moved off a node that was beyond -> for how many s


HELD = ("refused", "resting", "no-target", "budget", "draining", "empty")


def replay(
    policy: Policy,
    history: Mapping[str, Sequence[Sample]],
    nodes: Sequence[NodeNow],
    groups: Sequence[GroupNow],
) -> Replay:
    """`history`: of each node, oldest first. What `nodes` say of themselves now is taken to be of always,
    but for their samples."""
    world = _World(policy, nodes, list(groups))
    waiting = {name: deque(samples) for name, samples in history.items()}
    times = sorted(sample.at_s for samples in history.values() for sample in samples)
    found: list[ReplayedMove] = []
    held: dict[Code, float] = {}
    at_s = float("-inf")
    for each_s in times:
        if each_s - at_s < EACH_S:
            continue
        step_s, at_s = min(each_s - at_s, EACH_S), each_s
        for name, samples in waiting.items():
            while samples and samples[0].at_s <= at_s:
                world.measured(name, samples.popleft())
        moves, codes = world.step(at_s)
        found += moves
        for code in codes:
            held[code] = held.get(code, 0.0) + step_s
    return Replay(times[0] if times else None, times[-1] if times else None, tuple(found), held)


class _World:
    def __init__(self, policy: Policy, nodes: Sequence[NodeNow], groups: list[GroupNow]) -> None:
        self._policy = policy
        self._nodes = {node.name: node for node in nodes}
        self._groups = groups
        self._moves: list[Move] = []
        self._came: dict[str, float] = dict.fromkeys(self._nodes, 0.0)  # of CPU, by moves; may be negative
        # As far back as control looks: an hour.
        self._seen: dict[str, deque[Sample]] = {name: deque() for name in self._nodes}

    def measured(self, node: str, sample: Sample) -> None:
        if node not in self._nodes:
            return
        if sample.cpu_ratio is not None:
            would_be = min(1.0, max(0.0, sample.cpu_ratio + self._came[node]))
            sample = replace(sample, cpu_ratio=would_be)
        seen = self._seen[node]
        seen.append(sample)
        while seen[0].at_s < sample.at_s - HOUR_S:
            seen.popleft()

    def step(self, now_s: float) -> tuple[list[ReplayedMove], set[Code]]:
        nodes = [replace(node, samples=list(self._seen[name])) for name, node in self._nodes.items()]
        self._moves = [move for move in self._moves if now_s - move.at_s < HOUR_S]
        verdicts = evaluate([self._policy], nodes, self._groups, self._moves, now_s)
        found = []
        for verdict in verdicts:
            if verdict.code == "move" and verdict.group is not None and verdict.target is not None:
                self._carry_out(verdict.group, verdict.target, now_s)
                found.append(ReplayedMove(now_s, verdict.group, verdict.node, verdict.target, verdict.why))
        gone = {verdict.node for verdict in verdicts if verdict.code == "move"}
        held = {verdict.code for verdict in verdicts if verdict.code in HELD and verdict.node not in gone}
        return found, held

    def _carry_out(self, id: str, target: str, now_s: float) -> None:
        index = next(i for i, group in enumerate(self._groups) if group.id == id)
        group = self._groups[index]
        origin = self._nodes[group.node]
        measured = self._seen[origin.name][-1].cpu_ratio or 0.0
        share = share_of(group, self._groups, measured)
        cores = self._nodes[target].cores
        self._came[origin.name] -= share
        self._came[target] += share * (origin.cores / cores if origin.cores and cores else 1.0)
        self._groups[index] = replace(group, node=target)
        self._moves.append(
            Move(id, origin.name, target, now_s, ended_s=now_s, done=True, policy=self._policy.name)
        )
