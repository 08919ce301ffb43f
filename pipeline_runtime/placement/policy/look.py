"""One look at everything that policies decide by, and the questions that every kind of policy asks about it:
may this group move, and which node has room. Earlier decisions of the same look count for later ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline_runtime.placement.constraints import percent
from pipeline_runtime.placement.links import Latencies
from pipeline_runtime.placement.needs import part_of
from pipeline_runtime.placement.policy.facts import (
    GAP_S,
    HOUR_S,
    Code,
    Copied,
    CopyChange,
    GroupNow,
    Move,
    NodeNow,
    Verdict,
    crowded,
)
from pipeline_runtime.placement.policy.lasting import NEVER_S
from pipeline_runtime.placement.policy.rules import Apart, Policy

REST_S = 600.0
"""A group that was moved stays where it is for this long."""
TRY_AGAIN_S = 60.0
"""The time before a failed move is tried again, when all groups of a node have to leave."""
SETTLE_S = 60.0
"""A node is watched at least this long after a group was moved off or onto it."""
CPU_MOST = 0.8
"""A target's CPU stays under this, and under what policies of the CPU say, when nothing has to leave."""
BALANCING = ("apart", "spread", "pack")
"""Kinds that look at nodes, not at the purpose of an element."""
Choice = tuple[str | None, str]
"""(where a group goes, and why there), or (None, why nowhere)."""


@dataclass(frozen=True)
class Leaving:
    """How groups leave a node."""

    because: str  # begins the sentence
    window_s: float  # the time over which a target's CPU is looked at
    # the node has to be empty soon; otherwise one group leaves, and then it is looked at again
    all_of_it: bool
    cpu_most: float  # the highest CPU that a target may reach


@dataclass
class Look:
    nodes: Sequence[NodeNow]
    groups: Sequence[GroupNow]
    moves: list[Move]
    now_s: float
    cpu_most: float  # the highest CPU that a node may reach, by the strictest policy
    advised: Mapping[str, str]
    closed: Mapping[str, str]  # node -> why no policy moves anything there
    links: Latencies
    kept: Mapping[str, str]  # group -> why no policy that balances moves it
    apart: Sequence[Apart]  # how many groups of a pipeline a node takes
    copied: Sequence[Copied] = ()
    changes: list[CopyChange] = field(default_factory=list)
    ways: Latencies = field(default_factory=dict)  # for the rows of streams

    # -- a node ------------------------------------------------------------------------------------------

    def on(self, node: str) -> list[GroupNow]:
        return [group for group in self.groups if group.node == node]

    def holds_back(self, node: NodeNow, because: str) -> tuple[Code, str] | None:
        """Returns why nothing may leave the node now, whatever the reason for it, or None."""
        if node.draining:
            return "draining", f"{because}, and what it runs leaves it already."
        leaving = next((m for m in self.moves if m.origin == node.name and m.ended_s is None), None)
        if leaving is not None:
            return "moving", f"{because}; {self._title(leaving.group)} is to go to {leaving.target} first."
        if not self.on(node.name):
            return "empty", f"{because}, but no element runs there."
        return None

    def is_heard(self, node: NodeNow) -> bool:
        return bool(node.samples) and self.now_s - node.samples[-1].at_s <= GAP_S

    def settled_s(self, node: str) -> float:
        """Returns when the last move off or onto it ended."""
        ends = [m.ended_s for m in self.moves if m.ended_s is not None and node in (m.origin, m.target)]
        return max(ends, default=NEVER_S)

    def cpu(self, node: NodeNow, window_s: float) -> list[float]:
        """Returns its recent CPU, the newest first."""
        from_s = self.now_s - window_s
        found: list[float] = []
        for sample in reversed(node.samples):
            if sample.at_s < from_s and found:
                break
            if sample.cpu_ratio is not None:
                found.append(sample.cpu_ratio)
        return found

    def would_be(self, node: NodeNow, origin: NodeNow, share: float, window_s: float) -> float:
        """Returns its CPU with a group that has `share` of the CPU of `origin`. The highest recent value
        counts, as it will come again."""
        return max(self.cpu(node, window_s), default=0.0) + self.share_on(node, origin, share)

    def share_on(self, node: NodeNow, origin: NodeNow, share: float) -> float:
        """Returns the part of the node's CPU that equals `share` of the CPU of `origin`."""
        return share * (origin.cores / node.cores if origin.cores and node.cores else 1.0)

    def may_take(self, node: NodeNow, origin: NodeNow) -> bool:
        """Returns whether it may take groups: it was not told otherwise, and no recent move prevents it."""
        return node.name != origin.name and self.unfit(node, 0.0, all_of_it=True) is None

    def covers(self, node: NodeNow, seconds: float) -> bool:
        """Returns whether it has been heard for so long."""
        return bool(node.samples) and self.now_s - node.samples[0].at_s >= seconds

    # -- a group -----------------------------------------------------------------------------------------

    def leave(self, policy: Policy, node: NodeNow, leaving: Leaving) -> list[Verdict]:
        """Returns a verdict on each group of the node that was considered, in the order in which they
        leave."""
        found = []
        for group in self._in_order(node, leaving):
            verdict = self.consider(
                policy,
                group,
                leaving.because,
                lambda group=group: self._choose(node, group, leaving),  # type: ignore[misc]
                has_to=leaving.all_of_it,
            )
            found.append(verdict)
            if verdict.code in ("move", "budget"):
                break
        return found

    def consider(
        self,
        policy: Policy,
        group: GroupNow,
        because: str,
        choose: Callable[[], Choice],
        has_to: bool = False,
        own_rest_s: float = REST_S,
    ) -> Verdict:
        """Returns whether the group moves now, and where `choose` says. With `has_to` it rests only after a
        failure. After a move that this policy ordered it rests for `own_rest_s`."""

        def says(code: Code, why: str, target: str | None = None) -> Verdict:
            return Verdict(policy.name, group.node, code, why, group.id, target)

        refusal = self.refusal(policy, group)
        if refusal is not None:
            return says("refused", f"{group.title} cannot move: {refusal}.")
        rests = self._rests(policy, group, has_to, own_rest_s)
        if rests is not None:
            return says("resting", rests)
        chosen, why = choose()
        if chosen is None:
            return says("no-target", f"{why}.")
        spent = self.spent(policy)
        if spent is not None:
            return says("budget", f"{group.title} would go to {chosen}, but {spent}.", chosen)
        # A move that is only advised may happen as well, so no other group counts on the same room.
        self.moves.append(Move(group.id, group.node, chosen, self.now_s, policy=policy.name))
        return says("move", f"{because}; {why}.", chosen)

    def spent(self, policy: Policy) -> str | None:
        """Returns that the moves per hour are used up, or None. An upgrade that the policy made counts as
        one."""
        used = sum(1 for m in self.moves if m.policy == policy.name and self.now_s - m.at_s < HOUR_S)
        used += sum(1 for c in self.changes if c.policy == policy.name and self.now_s - c.at_s < HOUR_S)
        if used < policy.moves_per_hour:
            return None
        return f"{used} of {policy.moves_per_hour} moves were made in the last hour"

    def refusal(self, policy: Policy, group: GroupNow) -> str | None:
        """Returns why the policy cannot or must not move it now, or None."""
        kept = self.kept.get(group.id) if policy.rule.kind in BALANCING else None
        return group.refusal or kept

    def unfit(
        self, node: NodeNow, window_s: float, all_of_it: bool = False, group: GroupNow | None = None
    ) -> str | None:
        """Returns why the node takes nothing now, or not that `group`; None if it does. With `all_of_it` the
        group comes from a node that has to be empty."""
        if node.refusal is not None:
            return node.refusal
        if not self.is_heard(node):
            return "was not heard lately"
        if node.name in self.closed:
            return self.closed[node.name]
        if all_of_it:
            return None
        if any(move.target == node.name and move.ended_s is None for move in self.moves):
            return "is taking something else already"
        if self.now_s - self.settled_s(node.name) < window_s:
            return f"was part of a move less than {window_s:.0f} s ago"
        return self._has_enough(node, group) if group is not None else None

    def of_pipeline(self, pipeline: str) -> list[GroupNow]:
        return [group for group in self.groups if group.pipeline == pipeline]

    def come(self, node: NodeNow, pipeline: str) -> set[str]:
        """Returns the groups of the pipeline that run there or are on their way."""
        coming = {move.group for move in self.moves if move.target == node.name and move.ended_s is None}
        own = self.of_pipeline(pipeline)
        return {group.id for group in own if group.node == node.name or group.id in coming}

    def _has_enough(self, node: NodeNow, group: GroupNow) -> str | None:
        """Returns why the node takes no more of the group's pipeline, for a policy that keeps its groups
        apart, or None."""
        for rule in self.apart:
            if rule.pipeline == group.pipeline:
                all_of_it = len(self.of_pipeline(rule.pipeline))
                there = len(self.come(node, rule.pipeline) - {group.id})
                if there >= rule.limit(all_of_it):
                    return f"has {there} of the {all_of_it} groups of {rule.pipeline}"
        return None

    def not_apart(self, group: GroupNow, node: str) -> str | None:
        """Returns which group there it has to be apart from, whether that runs there or is on its way."""
        goes = {move.group: move.target for move in self.moves if move.ended_s is None}
        there = [each for each in self.groups if node in (each.node, goes.get(each.id))]
        others = sorted(each.title for each in there if each.id in group.apart)
        return f"runs {' and '.join(others)}, from which it must stay apart" if others else None

    def room(
        self, origin: NodeNow, group: GroupNow, nodes: Iterable[NodeNow], keeps_apart: bool
    ) -> tuple[dict[str, float], list[str]]:
        """Returns node -> its CPU with the group, for nodes that can take it; and why each other node
        cannot. `nodes` are others than its own. With `keeps_apart`, a node that runs enough of its
        pipeline cannot."""
        share = self.share(group, origin, SETTLE_S)
        most = min(self.cpu_most, CPU_MOST)
        fit: dict[str, float] = {}
        reasons = []
        for node in nodes:
            # When both are on one machine, its CPU includes the group already.
            more = 0.0 if node.machine and node.machine == origin.machine else share
            would_be = self.would_be(node, origin, more, SETTLE_S)
            reason = self.unfit(node, SETTLE_S, group=group if keeps_apart else None)
            reason = reason or self.not_apart(group, node.name) or crowded(would_be, most)
            if reason is None:
                fit[node.name] = would_be
            else:
                reasons.append(f"{node.name} {reason}")
        return fit, reasons

    def share(self, group: GroupNow, node: NodeNow, window_s: float) -> float:
        return share_of(group, self.groups, mean(self.cpu(node, window_s)))

    def _in_order(self, node: NodeNow, leaving: Leaving) -> list[GroupNow]:
        """Returns the order in which groups leave. When one leaves, the busiest goes first: that takes the
        fewest moves. When all leave, the one with the least state goes first, as it is gone soonest, so that
        most are away when the node ends."""
        there = self.on(node.name)
        if leaving.all_of_it:
            return sorted(there, key=lambda group: (group.state_bytes, -group.rows_per_s, group.id))
        there.sort(key=lambda group: (-group.rows_per_s, group.state_bytes, group.id))
        return sorted(there, key=lambda group: group.id not in self.advised)

    def _choose(self, origin: NodeNow, group: GroupNow, leaving: Leaving) -> Choice:
        """Returns the node that is least busy with the group."""
        share = self.share(group, origin, leaving.window_s)
        fit: list[tuple[float, str]] = []
        busy: list[tuple[float, str]] = []
        reasons = []
        for node in self.nodes:
            if node.name == origin.name:
                continue
            reason = self.unfit(node, leaving.window_s, leaving.all_of_it, group)
            reason = reason or self.not_apart(group, node.name)
            would_be = self.would_be(node, origin, share, leaving.window_s)
            if reason is None and (reason := crowded(would_be, leaving.cpu_most)) is not None:
                busy.append((would_be, node.name))
            if reason is None:
                fit.append((would_be, node.name))
            else:
                reasons.append(f"{node.name} {reason}")
        first = f"{group.title} is the busiest that fits elsewhere, about {percent(share)} of the CPU"
        if leaving.all_of_it:
            first = f"{group.title} has the least state of what can leave, so it is gone soonest"
        if fit:
            would_be, name = min(fit, key=lambda each: (each[1] != self.advised.get(group.id), each))
            return name, f"{first}; {name} has room, it would reach {percent(would_be)} of its CPU"
        if leaving.all_of_it and busy:
            # A slow node is better than one that is about to end.
            would_be, name = min(busy)
            there = f"all others are busy, {name} least: it would reach {percent(would_be)} of its CPU"
            return name, f"{first}; {there}"
        others = ", ".join(reasons) or "there is no other node"
        return None, f"No node can take {group.title}: {others}"

    def _rests(self, policy: Policy, group: GroupNow, has_to: bool, own_rest_s: float) -> str | None:
        """Returns why it is not moved so soon after its last move, or None if it may be."""
        ended = [move for move in self.moves if move.group == group.id and move.ended_s is not None]
        if not ended:
            return None
        moved = max(ended, key=lambda move: move.ended_s or 0.0)
        rest_s = own_rest_s if moved.policy == policy.name else REST_S
        if has_to:
            rest_s = 0.0 if moved.done else TRY_AGAIN_S
        rests_s = (moved.ended_s or 0.0) + rest_s - self.now_s
        if rests_s <= 0:
            return None
        tried = "was moved" if moved.done else "was not moved, as was tried,"
        return f"{group.title} {tried} less than {rest_s / 60:.0f} min ago: it rests for {rests_s:.0f} s."

    def _title(self, group: str) -> str:
        return next((each.title for each in self.groups if each.id == group), group)


def share_of(group: GroupNow, groups: Iterable[GroupNow], node_cpu: float) -> float:
    """Returns the part of its node's CPU (0..1) that is taken to be the group's: its rows/s divided by all
    rows/s there.

    Everything else on the machine is counted in, so the result is too high rather than too low.
    """
    there = [each.rows_per_s for each in groups if each.node == group.node]
    return node_cpu * part_of(group.rows_per_s, there)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
