"""Pipelines' copies at sites while a policy is replayed: sites come and go, and copies with them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pipeline_runtime.placement.policy.facts import (
    HOUR_S,
    Copied,
    CopyChange,
    GroupNow,
    NodeNow,
    Verdict,
)


class CopiesThen:
    def __init__(self, copied: Sequence[Copied], later: Collection[str]) -> None:
        """`copied` says which copies there are now, `later` which sites came after the beginning. Copies at
        those are assumed to have come later too, unless some part has no other copy. Sites that have only
        some of the copies count as they are."""
        # A site's groups are kept as they are now, since its copies are made from them when the site comes.
        self._at = {each.pipeline: dict(each.at) for each in copied}
        self._copied = {each.pipeline: _without(each, later) for each in copied}
        self._templates: dict[str, GroupNow] = {}
        self._changes: list[CopyChange] = []

    def now(self) -> list[Copied]:
        return list(self._copied.values())

    def changes_at(self, now_s: float) -> list[CopyChange]:
        """Returns the changes of the last hour."""
        self._changes = [each for each in self._changes if now_s - each.at_s < HOUR_S]
        return self._changes

    def begin(self, groups: Sequence[GroupNow]) -> list[GroupNow]:
        """Returns the groups without the copies that come later."""
        self._templates = {group.id: group for group in groups}
        later = {
            id
            for pipeline, copied in self._copied.items()
            for site in self._at[pipeline].keys() - copied.at.keys()
            for id in self._at[pipeline][site]
        }
        return [group for group in groups if group.id not in later]

    def with_refuges(self, groups: Sequence[GroupNow], nodes: Sequence[NodeNow]) -> list[GroupNow]:
        """Lets copies whose node was down go on at the least busy node that was up."""
        up = {node.name: node for node in nodes if node.up}
        free = [node for node in up.values() if node.refusal is None]
        refuge = min(free, key=lambda node: (_cpu(node), node.name)).name if free else None
        at_sites = {id for copied in self._copied.values() for ids in copied.at.values() for id in ids}
        return [
            replace(group, refuge=refuge) if group.id in at_sites and group.node not in up else group
            for group in groups
        ]

    def change(
        self, verdict: Verdict, groups: Sequence[GroupNow], nodes: Sequence[NodeNow], now_s: float
    ) -> list[GroupNow]:
        """Returns the groups after a pipeline's copies at a site have come or gone."""
        pipeline, site = verdict.pipeline or "", verdict.site or ""
        self._changes.append(CopyChange(pipeline, site, verdict.policy, now_s))
        copied = self._copied[pipeline]
        if verdict.code == "take-out":
            gone = copied.at[site]
            left = {at: ids for at, ids in copied.at.items() if at != site}
            self._copied[pipeline] = _with(copied, left, copied.lacks | {site})
            return [group for group in groups if group.id not in gone]
        node = min(node.name for node in nodes if node.site == site and node.up)
        came = [replace(each, node=node) for each in self._new(pipeline, site)]
        there = {**copied.at, site: tuple(each.id for each in came)}
        self._copied[pipeline] = _with(copied, there, copied.lacks - {site})
        return [*groups, *came]

    def _new(self, pipeline: str, site: str) -> list[GroupNow]:
        """Returns them as they are at that site now, else as at the first site that has copies."""
        own = self._at[pipeline]
        if site in own:
            return [self._templates[id] for id in own[site] if id in self._templates]
        first = min(own)
        like = [self._templates[id] for id in own[first] if id in self._templates]
        return [replace(each, id=f"{each.id} {site}", title=f"{each.title}, at {site}") for each in like]


def _without(copied: Copied, later: Collection[str]) -> Copied:
    late = {site for site in copied.at if site in later and site not in copied.only}
    if len(late) == len(copied.at):
        late = set()
    left = {site: ids for site, ids in copied.at.items() if site not in late}
    return _with(copied, left, copied.lacks - copied.at.keys() | late)


def _with(copied: Copied, at: Mapping[str, tuple[str, ...]], lacks: Collection[str]) -> Copied:
    """The last copies are the only ones, whatever there is now."""
    only = frozenset(at) if len(at) == 1 else copied.only & at.keys()
    return replace(copied, at=at, lacks=frozenset(lacks), only=only)


def _cpu(node: NodeNow) -> float:
    return (node.samples[-1].cpu_ratio or 0.0) if node.samples else 0.0
