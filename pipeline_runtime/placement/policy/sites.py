"""Gives a site that appears its copies of the parts that are copied to each site. When a site goes, its
copies are taken out, go on elsewhere, or wait for it.

A site that comes and goes does not have its copies made and removed all the time:

- it has to be there, or gone, without a break for as long as the policy says;
- after a policy has changed something there, every policy rests for REST_S;
- an upgrade counts as one of the policy's moves per hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_runtime.placement.policy.facts import (
    GAP_S,
    Code,
    Copied,
    CopyChange,
    GroupNow,
    NodeNow,
    Verdict,
)
from pipeline_runtime.placement.policy.look import REST_S, Look
from pipeline_runtime.placement.policy.rules import Policy, Sites


def verdicts(look: Look, policy: Policy, rule: Sites) -> list[Verdict]:
    """Returns a verdict on each pipeline that the policy is about, at each site. Copies that go on elsewhere
    have one verdict per group."""
    places: dict[str, list[NodeNow]] = {}
    for node in look.nodes:
        places.setdefault(node.site, []).append(node)
    found: list[Verdict] = []
    for copied in look.copied:
        if not rule.concerns(copied.pipeline):
            continue
        for site in sorted({*copied.lacks, *copied.at}):
            at = _Site(look, policy, rule, copied, site, places.get(site, []))
            # Some of its parts may be there already.
            if site in copied.lacks and not at.is_down:
                found += at.comes()
            elif site in copied.at:
                found += at.stays()
    return found


def appeared_s(nodes: Sequence[NodeNow], look: Look) -> float | None:
    """Returns since when one of them has been there without a break and takes elements now, or None if none
    does."""
    taking = [node for node in nodes if look.unfit(node, 0.0, all_of_it=True) is None and node.up]
    return min((_heard_since_s(node) for node in taking), default=None)


def _heard_since_s(node: NodeNow) -> float:
    since_s = node.samples[-1].at_s
    for sample in reversed(node.samples):
        if since_s - sample.at_s > GAP_S:
            break
        since_s = sample.at_s
    return since_s


@dataclass(frozen=True)
class _Site:
    """One pipeline at one site."""

    look: Look
    policy: Policy
    rule: Sites
    copied: Copied
    site: str
    nodes: Sequence[NodeNow]

    @property
    def is_down(self) -> bool:
        return not any(node.up for node in self.nodes)

    def comes(self) -> list[Verdict]:
        since_s = appeared_s(self.nodes, self.look)
        if since_s is None:
            return self._says("calm", f"No node of {self.site} takes elements now.")
        there_s = self.look.now_s - since_s
        if there_s < self.rule.for_s:
            return self._says(
                "not-yet", f"{self.site} has been there for {there_s:.0f} s of {self.rule.for_s} s."
            )
        return self._change("copy", f"{self.site} is there, and {self.copied.pipeline} has no copy there yet")

    def stays(self) -> list[Verdict]:
        """Returns verdicts on its copies, which are there."""
        pipeline, site = self.copied.pipeline, self.site
        if not self.nodes:
            return self._says("refused", f"No node stands at {site} any more: its copies are left to you.")
        if not self.is_down:
            return self._says("calm", f"{pipeline} has its copy at {site}.")
        silent_s = self.look.now_s - max(node.seen_s or 0.0 for node in self.nodes)
        gone = f"No node of {site} has been heard for {min(silent_s, 1e6):.0f} s"
        if silent_s < self.rule.gone_s:
            return self._says("not-yet", f"{gone} of {self.rule.gone_s} s.")
        there = {node.name for node in self.nodes}
        left = [each for each in self.look.groups if each.id in self.copied.at[site] and each.node in there]
        if not left:
            return self._says("calm", f"{gone}; its copies of {pipeline} run elsewhere.")
        gone = f"No node of {site} has been heard for {self.rule.gone_s} s"
        if self.rule.gone == "elsewhere":
            return [self._elsewhere(group, gone) for group in left]
        if self.rule.gone == "wait":
            return self._says("waits", f"{gone}; its copies of {pipeline} wait for it.")
        if site in self.copied.only:
            return self._says("waits", f"{gone}; these are the only copies that {pipeline} has: they wait.")
        if len(left) < len(self.copied.at[site]):
            return self._says("waits", f"{gone}; some of its copies of {pipeline} run elsewhere: all stay.")
        return self._change("take-out", gone)

    def _change(self, code: Code, because: str) -> list[Verdict]:
        """Adds or removes its copies, unless something prevents it."""
        if self.copied.changing:
            return self._says("moving", f"{because}; {self.copied.pipeline} is being upgraded first.")
        rests_s = self._rests_s()
        if rests_s > 0:
            changed = f"its copies there were changed less than {REST_S / 60:.0f} min ago"
            return self._says("resting", f"{because}; {changed}: they rest for {rests_s:.0f} s.")
        if self.copied.refusal is not None:
            return self._says("refused", f"{because}, but {self.copied.refusal}.")
        spent = self.look.spent(self.policy)
        if spent is not None:
            return self._says("budget", f"{because}, but {spent}.")
        now = CopyChange(self.copied.pipeline, self.site, self.policy.name, self.look.now_s)
        # Two sites that appear together get their copies one after the other: one upgrade at a time.
        waits = any(each.pipeline == now.pipeline and each.at_s == now.at_s for each in self.look.changes)
        if waits:
            return self._says("moving", f"{because}; another site of {now.pipeline} comes or goes first.")
        self.look.changes.append(now)
        return self._says(code, f"{because}.")

    def _rests_s(self) -> float:
        ends = [
            each.at_s
            for each in self.look.changes
            if (each.pipeline, each.site) == (self.copied.pipeline, self.site)
        ]
        return max(ends, default=float("-inf")) + REST_S - self.look.now_s

    def _elsewhere(self, group: GroupNow, gone: str) -> Verdict:
        def says(code: Code, why: str, target: str | None = None) -> Verdict:
            place = (self.site, self.copied.pipeline)
            return Verdict(self.policy.name, group.node, code, why, group.id, target, *place)

        moving = next((m for m in self.look.moves if m.group == group.id and m.ended_s is None), None)
        if moving is not None:
            return says("moving", f"{gone}; {group.title} is on its way to {moving.target}.")
        failed = [m for m in self.look.moves if m.group == group.id and not m.done]
        rests_s = max((m.ended_s or 0.0 for m in failed), default=float("-inf")) + REST_S - self.look.now_s
        if rests_s > 0:
            return says("resting", f"{gone}; {group.title} was not restored: it is tried in {rests_s:.0f} s.")
        if group.refuge is None:
            return says("no-target", f"{gone}; no other node can take {group.title} now.")
        spent = self.look.spent(self.policy)
        if spent is not None:
            return says("budget", f"{gone}; {group.title} would go on at {group.refuge}, but {spent}.")
        return says("restore", f"{gone}; {group.title} goes on at {group.refuge}.", group.refuge)

    def _says(self, code: Code, why: str) -> list[Verdict]:
        place = (self.site, self.copied.pipeline)
        return [Verdict(self.policy.name, "", code, why, None, None, *place)]
