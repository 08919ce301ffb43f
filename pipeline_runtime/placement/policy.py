"""When groups leave a node by themselves: its CPU is above a threshold, or its battery below one.

Pure: what was measured and moved in, a verdict for each node that was looked at out, with the reason why
something moves or does not. Control acts by it, a dry run replays it (policy_replay.py).

What keeps load that flaps around the threshold from moving anything back and forth:

- it has to be above for `for_s` in one go, and then counts as hot until it is under threshold - MARGIN;
- what was moved off or onto a node begins that time anew there, and such a node takes nothing else meanwhile;
- a target stays under threshold - MARGIN with what comes to it;
- a group that was moved, by whomever, rests for REST_S; and a policy has a budget of moves per hour.

A battery that runs down does not wait for that: its groups leave one after another, within the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["cpu", "battery"]
Mode = Literal["advice", "automatic"]
Code = Literal[
    "unknown",  # nothing is heard of it
    "calm",  # on the good side of the threshold
    "not-yet",  # beyond it, but not for long enough
    "moving",  # something is to leave it first
    "draining",  # all of it is leaving already
    "empty",  # it runs nothing
    "refused",  # the group cannot move now
    "resting",  # the group was moved a short while ago
    "no-target",  # no node can take the group
    "budget",  # it would be moved, but for the budget
    "move",  # it is to be moved
]

MARGIN = 0.1
"""Between what makes a node hot (its battery low) and what ends that."""
REST_S = 600.0
"""A group that was moved stays where it is for that long."""
TRY_AGAIN_S = 60.0
"""Before a group is moved off a battery again, when its move has failed."""
SETTLE_S = 60.0
"""At least so long a node is watched after something was moved off or onto it."""
HOUR_S = 3600.0
NOTHING: Mapping[str, str] = MappingProxyType({})
NEVER_S = float("-inf")
GAP_S = 120.0
"""Between two samples, four times as much as usual: nobody knows what was between."""


@dataclass(frozen=True)
class Policy:
    name: str
    kind: Kind
    threshold: float  # 0..1: of the CPU or of the battery
    for_s: float
    mode: Mode = "advice"
    moves_per_hour: int = 6

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise ValueError(f"the threshold is {self.threshold}, not between 0 and 1")
        if self.kind == "cpu" and self.threshold <= MARGIN:
            raise ValueError(f"a threshold of the CPU is above {MARGIN:.0%}, else nothing could ever move")

    @property
    def target_most(self) -> float:
        """How far a node's CPU may come by what is moved to it, of a policy of the CPU."""
        return self.threshold - MARGIN

    def beyond(self, value: float) -> bool:
        return value > self.threshold if self.kind == "cpu" else value < self.threshold

    def over(self, value: float) -> bool:
        """It ends what was beyond."""
        if self.kind == "cpu":
            return value < self.threshold - MARGIN
        return value > min(self.threshold + MARGIN, 0.99)


@dataclass(frozen=True)
class Sample:
    """Of one node. None: it does not say."""

    at_s: float
    cpu_ratio: float | None = None
    battery_ratio: float | None = None
    on_battery: bool | None = None

    def value(self, kind: Kind) -> float | None:
        """What a policy of that kind looks at. A battery that is being charged is as good as full."""
        if kind == "cpu":
            return self.cpu_ratio
        return 1.0 if self.battery_ratio is not None and self.on_battery is False else self.battery_ratio


@dataclass(frozen=True)
class NodeNow:
    name: str
    samples: Sequence[Sample]  # oldest first
    cores: int = 0  # 0: not known
    refusal: str | None = None  # why it takes nothing new, said of it: "is cordoned"
    draining: bool = False


@dataclass(frozen=True)
class GroupNow:
    id: str
    title: str  # what people call it
    node: str
    rows_per_s: float
    state_bytes: int = 0
    refusal: str | None = None  # why it cannot move now


@dataclass(frozen=True)
class Move:
    """One that was ordered, by a policy or by people."""

    group: str
    origin: str
    target: str
    at_s: float
    ended_s: float | None = None  # None: under way
    done: bool = False
    policy: str | None = None


@dataclass(frozen=True)
class Verdict:
    """`group` None: of the node as a whole. `target`: only of "move" and "budget"."""

    policy: str
    node: str
    code: Code
    why: str  # a sentence
    group: str | None = None
    target: str | None = None

    @property
    def what(self) -> tuple[str, str | None, str, str | None]:
        """What it says but for the figures: while that is the same, nothing new was decided."""
        return (self.node, self.group, self.code, self.target)


def evaluate(
    policies: Iterable[Policy],
    nodes: Sequence[NodeNow],
    groups: Sequence[GroupNow],
    moves: Sequence[Move],
    now_s: float,
    advised: Mapping[str, str] = NOTHING,
) -> list[Verdict]:
    """What each policy says of each node now. `moves`: those of the last hour, and all that are under way.
    `advised`: group -> target, of the last time: that stays so while it fits, so that advice does not change
    with every sample.

    Batteries first: what is to be moved off one is not moved for another reason as well. No node is to give
    up two groups at once, and none is to take two at once for its neighbours' CPU.
    """
    policies = sorted(policies, key=lambda policy: (policy.kind != "battery", policy.name))
    cpu_most = min((policy.target_most for policy in policies if policy.kind == "cpu"), default=1.0)
    look = _Look(nodes, groups, list(moves), now_s, cpu_most, advised)
    return [verdict for policy in policies for node in nodes for verdict in look.at(policy, node)]


def share_of(group: GroupNow, groups: Iterable[GroupNow], node_cpu: float) -> float:
    """The part of its node's CPU (0..1) that is taken to be the group's: as its rows/s to all rows/s there.

    What else runs on the machine is counted in, so it is rather too much than too little.
    """
    there = [each for each in groups if each.node == group.node]
    rows = sum(each.rows_per_s for each in there)
    return node_cpu * (group.rows_per_s / rows if rows > 0 else 1 / max(1, len(there)))


def beyond_since(
    policy: Policy, samples: Sequence[Sample], after_s: float = NEVER_S
) -> tuple[float | None, bool]:
    """(Since when the newest samples are beyond the threshold in one go, or None; whether that counts).

    It counts once it has lasted for `for_s`, and from then on until a sample says that it is over. What was
    measured up to `after_s` does not count.
    """
    since, counts, before_s = None, False, None
    for sample in _since_it_was_over(policy, samples, after_s):
        value = sample.value(policy.kind)
        if before_s is not None and sample.at_s - before_s > GAP_S:
            since, counts = None, False
        before_s = sample.at_s
        if value is not None and policy.beyond(value):
            since = sample.at_s if since is None else since
            counts = counts or sample.at_s - since >= policy.for_s
        else:
            since = None
    return since, counts


def _since_it_was_over(policy: Policy, samples: Sequence[Sample], after_s: float) -> Sequence[Sample]:
    """The newest samples; empty when the last one says that it is over. From behind: most nodes are calm."""
    start = len(samples)
    while start > 0:
        sample = samples[start - 1]
        value = sample.value(policy.kind)
        if sample.at_s <= after_s or value is None or policy.over(value):
            break
        start -= 1
    return samples[start:]


@dataclass
class _Look:
    """One evaluation: what it has decided so far counts for what follows."""

    nodes: Sequence[NodeNow]
    groups: Sequence[GroupNow]
    moves: list[Move]
    now_s: float
    cpu_most: float  # up to which a node's CPU may come, for the strictest policy
    advised: Mapping[str, str]

    def at(self, policy: Policy, node: NodeNow) -> list[Verdict]:
        """Of the node, or of each of its groups that was considered."""
        whole = self._of_node(policy, node)
        if whole is not None:
            return [whole]
        found = []
        for group in self._in_order(policy, node):
            verdict = self._of_group(policy, node, group)
            found.append(verdict)
            if verdict.code in ("move", "budget"):
                break
        return found

    def _of_node(self, policy: Policy, node: NodeNow) -> Verdict | None:
        """Why nothing is to leave it, or None."""

        def says(code: Code, why: str) -> Verdict:
            return Verdict(policy.name, node.name, code, why)

        newest = node.samples[-1] if node.samples else None
        value = newest.value(policy.kind) if newest is not None else None
        what = "CPU" if policy.kind == "cpu" else "battery"
        if newest is None or self.now_s - newest.at_s > GAP_S:
            return says("unknown", f"Nothing was heard of {node.name} in the last {GAP_S:.0f} s.")
        if value is None:
            none = "has no battery" if policy.kind == "battery" else "does not say how busy it is"
            return says("unknown", f"{node.name} {none}.")
        # What was moved changes the CPU, so that it is watched anew; a battery only goes on running down.
        after_s = self._settled_s(node.name) if policy.kind == "cpu" else NEVER_S
        since, counts = beyond_since(policy, node.samples, after_s)
        if not counts and since is None:
            return says("calm", f"The {what} of {node.name} is at {_percent(value)}.")
        if not counts:
            lasted = f"{max(0.0, newest.at_s - (since or 0.0)):.0f} s of {policy.for_s:.0f} s"
            return says("not-yet", f"{self._beyond(policy, node.name)} for {lasted}.")
        if node.draining:
            return says("draining", f"{self._beyond(policy, node.name)}, and what it runs leaves it already.")
        leaving = next((m for m in self.moves if m.origin == node.name and m.ended_s is None), None)
        if leaving is not None:
            first = f"{self._title(leaving.group)} is to go to {leaving.target} first"
            return says("moving", f"{self._beyond(policy, node.name)}; {first}.")
        if not any(group.node == node.name for group in self.groups):
            return says("empty", f"{self._beyond(policy, node.name)}, but no element runs there.")
        return None

    def _in_order(self, policy: Policy, node: NodeNow) -> list[GroupNow]:
        """Off a busy node the busiest first: fewest moves help most. Off a battery the one with the least
        state first, as it is gone soonest: so most are away when the battery ends."""
        there = [group for group in self.groups if group.node == node.name]
        if policy.kind == "cpu":
            there.sort(key=lambda group: (-group.rows_per_s, group.state_bytes, group.id))
            return sorted(there, key=lambda group: group.id not in self.advised)
        return sorted(there, key=lambda group: (group.state_bytes, -group.rows_per_s, group.id))

    def _of_group(self, policy: Policy, node: NodeNow, group: GroupNow) -> Verdict:
        def says(code: Code, why: str, target: str | None = None) -> Verdict:
            return Verdict(policy.name, node.name, code, why, group.id, target)

        if group.refusal is not None:
            return says("refused", f"{group.title} cannot move: {group.refusal}.")
        moved = self._last_move(group.id)
        if moved is not None and (rests_s := self._rests_s(policy, moved)) > 0:
            ended = "was moved" if moved.done else "was not moved, as was tried,"
            return says(
                "resting",
                f"{group.title} {ended} less than {self._rest_s(policy, moved) / 60:.0f} min ago: it rests"
                f" for {rests_s:.0f} s.",
            )
        share = share_of(group, self.groups, _mean(self._window(policy, node)))
        chosen, why = self._target(policy, node, group, share)
        if chosen is None:
            return says("no-target", f"No node can take {group.title}: {why}.")
        told = f"{self._beyond(policy, node.name)}; {why}."
        used = sum(1 for m in self.moves if m.policy == policy.name and self.now_s - m.at_s < HOUR_S)
        if used >= policy.moves_per_hour:
            spent = f"{used} of {policy.moves_per_hour} moves were made in the last hour"
            return says("budget", f"{group.title} would go to {chosen}, but {spent}.", chosen)
        # What it is only advised to do may come about as well: nobody else counts on the same room.
        self.moves.append(Move(group.id, node.name, chosen, self.now_s, policy=policy.name))
        return says("move", told, chosen)

    def _target(
        self, policy: Policy, origin: NodeNow, group: GroupNow, share: float
    ) -> tuple[str | None, str]:
        """(Where the group goes, and why there), or (None, why nowhere)."""
        fit: list[tuple[float, str]] = []
        busy: list[tuple[float, str]] = []
        reasons = []
        for node in self.nodes:
            if node.name == origin.name:
                continue
            reason = self._unfit(policy, node)
            would_be = self._would_be(policy, node, origin, share)
            if reason is None and would_be > self.cpu_most:
                busy.append((would_be, node.name))
                reason = f"would come to {_percent(would_be)} of its CPU, more than {_percent(self.cpu_most)}"
            if reason is None:
                fit.append((would_be, node.name))
            else:
                reasons.append(f"{node.name} {reason}")
        if fit:
            would_be, name = min(fit, key=lambda each: (each[1] != self.advised.get(group.id), each))
            there = f"{name} has room, it comes to {_percent(would_be)} of its CPU"
            return name, f"{self._first(policy, group, share)}; {there}"
        if policy.kind == "battery" and busy:
            # Slow there is better than dead here.
            would_be, name = min(busy)
            there = f"all others are busy, {name} least: it comes to {_percent(would_be)} of its CPU"
            return name, f"{self._first(policy, group, share)}; {there}"
        return None, ", ".join(reasons) or "there is no other node"

    def _unfit(self, policy: Policy, node: NodeNow) -> str | None:
        if node.refusal is not None:
            return node.refusal
        if not node.samples or self.now_s - node.samples[-1].at_s > GAP_S:
            return "was not heard lately"
        if policy.kind == "battery":
            value = node.samples[-1].value("battery")
            weak = value is not None and not policy.over(value)
            return f"is on battery itself, at {_percent(value or 0.0)}" if weak else None
        if any(move.target == node.name and move.ended_s is None for move in self.moves):
            return "is taking something else already"
        settles_s = max(policy.for_s, SETTLE_S)
        if self.now_s - self._settled_s(node.name) < settles_s:
            return f"was part of a move less than {settles_s:.0f} s ago"
        return None

    def _would_be(self, policy: Policy, node: NodeNow, origin: NodeNow, share: float) -> float:
        """Its CPU with the group; the highest of late, as that will come again."""
        cores = origin.cores / node.cores if origin.cores and node.cores else 1.0
        return max(self._window(policy, node), default=0.0) + share * cores

    def _window(self, policy: Policy, node: NodeNow) -> list[float]:
        """Its CPU of late."""
        from_s = self.now_s - max(policy.for_s, SETTLE_S)
        found: list[float] = []
        for sample in reversed(node.samples):
            if sample.at_s < from_s and found:
                break
            if sample.cpu_ratio is not None:
                found.append(sample.cpu_ratio)
        return found

    def _settled_s(self, node: str) -> float:
        """When the last move off or onto it ended."""
        ends = [m.ended_s for m in self.moves if m.ended_s is not None and node in (m.origin, m.target)]
        return max(ends, default=NEVER_S)

    def _last_move(self, group: str) -> Move | None:
        ended = [move for move in self.moves if move.group == group and move.ended_s is not None]
        return max(ended, key=lambda move: move.ended_s or 0.0, default=None)

    def _rest_s(self, policy: Policy, moved: Move) -> float:
        if policy.kind == "cpu":
            return REST_S
        return 0.0 if moved.done else TRY_AGAIN_S

    def _rests_s(self, policy: Policy, moved: Move) -> float:
        """For how much longer."""
        return (moved.ended_s or 0.0) + self._rest_s(policy, moved) - self.now_s

    def _first(self, policy: Policy, group: GroupNow, share: float) -> str:
        if policy.kind == "cpu":
            return f"{group.title} is the busiest that fits elsewhere, about {_percent(share)} of the CPU"
        return f"{group.title} has the least state of what can leave, so it is gone soonest"

    def _beyond(self, policy: Policy, node: str) -> str:
        threshold = _percent(policy.threshold)
        if policy.kind == "cpu":
            return f"The CPU of {node} has been above {threshold}"
        return f"The battery of {node} has been below {threshold}"

    def _title(self, group: str) -> str:
        return next((each.title for each in self.groups if each.id == group), group)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _percent(ratio: float) -> str:
    return f"{ratio:.0%}".replace("%", " %")
