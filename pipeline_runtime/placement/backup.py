"""Decides which node holds each group's backup beside the central store, and where the group goes on when its
own node fails.

The plan is made by `recovery_plan` over the nodes as they are: a link joins each node to its site, and links
join the sites. A backup stays where it is as long as it is of use there, since moving it sends all of it
again. Two rules go beyond the paper: another site than the owner's is better for a backup, and a group for
which no node has enough CPU gets a backup all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline_runtime.placement.recovery import (
    Link,
    Places,
    RecoveryGroup,
    RecoveryNode,
    RecoveryProblem,
    rejected,
)
from pipeline_runtime.placement.recovery_plan import plan_recovery

DISK_BYTES_PER_S = 200e6
"""The rate at which a node reads what it holds. Not measured. It is more than a link gives, so that a group
goes on where its backup lies, if it can."""
SITE_BYTES_PER_S = 125e6
"""The rate of a line that is not measured, between a site and all others, and between a node and its site: 1
Gbit/s."""
LOOKS = 3_000
"""Bounds the time of a plan to some 0.3 s at 30 nodes."""


@dataclass(frozen=True)
class BackupNode:
    """A registered node, with the facts that count for backups."""

    name: str
    up: bool
    cordoned: bool = False  # takes nothing new
    site: str | None = None  # where it stands; a node that no user gave a site is a site of its own
    cores: float = 0.0
    cpu_ratio: float = 0.0  # over all its cores
    disk_free_bytes: int = 0


@dataclass(frozen=True)
class GroupToBackUp:
    group: str
    owner: str  # the node that owns the group
    bytes_total: int = 0  # of its newest checkpoint
    bytes_per_s: float = 0.0  # what its checkpoints send, on average
    cpu: float = 0.0  # cores that it takes
    current: str | None = None  # where its backup lies now
    redeploy: str | None = None  # where it would go on, as planned before
    apart_from: frozenset[str] = frozenset()  # nodes that run a group it must not share a node with


@dataclass(frozen=True)
class BackupLimits:
    cpu_ratio_max: float = 0.9
    disk_free_bytes_min: int = 1_000_000_000
    bytes_per_s_max: float | None = None  # what one node may send and receive; None means no limit


@dataclass(frozen=True)
class Backup:
    store: str | None = None  # None when no node may hold it, and it has the central store alone
    redeploy: str | None = None  # None when no node has enough CPU left


@dataclass(frozen=True)
class _Level:
    """The rules for a group that found no place by stricter ones."""

    stays: bool  # the backup stays where it is, if it is of use there
    elsewhere: bool  # at another site than the owner's
    cpu_counts: bool


_LEVELS = tuple(
    _Level(*asked)
    for asked in (
        (True, True, True),
        (True, True, False),
        (False, True, False),
        (True, False, True),
        (True, False, False),
        (False, False, False),
    )
)


def plan_backups(
    groups: Iterable[GroupToBackUp],
    nodes: Iterable[BackupNode],
    limits: BackupLimits,
    between_sites: Mapping[frozenset[str], float] | None = None,
) -> dict[str, Backup]:
    """Returns group -> its backup. `between_sites` holds bytes/s, as far as they are known.

    The same arguments give the same answer, in any order. A group whose node does not answer sends nothing,
    and may be about to be restored, so it keeps its places.
    """
    known = sorted(nodes, key=lambda node: node.name)
    by_name = {node.name: node for node in known}
    asked = sorted(groups, key=lambda group: group.group)
    sending = [group for group in asked if group.owner in by_name and by_name[group.owner].up]
    found = {group.group: _as_before(group, by_name) for group in asked}
    if not sending:
        return found
    level = {group.group: _LEVELS[0] for group in sending}
    installation = RecoveryProblem(
        [_node(node, limits) for node in known], _links(known, limits, between_sites or {}), ()
    )
    number = {node.name: at for at, node in enumerate(known)}
    in_use = {group.group: _in_use(group, number) for group in sending}
    plan, first_time = in_use, not any(in_use.values())
    for asking in _LEVELS:
        if asking is not _LEVELS[0]:
            level |= dict.fromkeys(rejected(plan), asking)
        wanted = [_wanted(group, by_name, limits, level[group.group]) for group in sending]
        # Backups in use count before a new one is placed, even for groups that later levels ask less of.
        keep = {group: places or in_use[group] for group, places in plan.items()}
        plan = plan_recovery(installation.with_groups(wanted), None if first_time else keep, looks=LOOKS)
        first_time = False
        if not rejected(plan):
            break
    for group in sending:
        places = plan[group.group]
        if places is not None:
            redeploy = known[places.redeploy].name if level[group.group].cpu_counts else None
            found[group.group] = Backup(known[places.store].name, redeploy)
        elif not _is_of_use(group, by_name, limits):
            found[group.group] = Backup()
        else:  # a line that is short of room takes no backup away: it may have been busy when it was measured
            found[group.group] = Backup(group.current)
    return found


def _as_before(group: GroupToBackUp, nodes: Mapping[str, BackupNode]) -> Backup:
    return Backup(*(name if name in nodes else None for name in (group.current, group.redeploy)))


def _in_use(group: GroupToBackUp, number: Mapping[str, int]) -> Places | None:
    store = number.get(group.current or "")
    if store is None:
        return None
    return Places(store, number.get(group.redeploy or "", store))


def _is_of_use(group: GroupToBackUp, nodes: Mapping[str, BackupNode], limits: BackupLimits) -> bool:
    """Returns whether its backup can stay where it is."""
    holder = nodes.get(group.current or "")
    return holder is not None and _may_store(group, holder, nodes[group.owner], limits, _LEVELS[-1])


def _node(node: BackupNode, limits: BackupLimits) -> RecoveryNode:
    return RecoveryNode(
        node.name,
        cpu_spare=max(0.0, node.cores * (limits.cpu_ratio_max - node.cpu_ratio)),
        disk_bytes_per_s=DISK_BYTES_PER_S,
        disk_spare_bytes=float(max(0, node.disk_free_bytes - limits.disk_free_bytes_min)),
    )


def _wanted(
    group: GroupToBackUp, nodes: Mapping[str, BackupNode], limits: BackupLimits, level: _Level
) -> RecoveryGroup:
    able = {
        node.name for node in nodes.values() if _may_store(group, node, nodes[group.owner], limits, level)
    }
    if level.stays and group.current in able:
        able = {group.current}
    free = {node.name for node in nodes.values() if node.up and not node.cordoned} - group.apart_from
    return RecoveryGroup(
        group.group,
        group.owner,
        cpu=group.cpu if level.cpu_counts else 0.0,
        backup_bytes=float(group.bytes_total),
        store_bytes_per_s=group.bytes_per_s,
        held_by=group.current,
        no_store=frozenset(nodes.keys() - able),
        no_redeploy=frozenset(nodes.keys() - free) if level.cpu_counts else frozenset(),
    )


def _may_store(
    group: GroupToBackUp, node: BackupNode, owner: BackupNode, limits: BackupLimits, level: _Level
) -> bool:
    """Returns whether the node may store the backup. Load comes and goes, so it does not move a backup; only
    what makes the backup useless does."""
    if not node.up or node.name == owner.name or node.disk_free_bytes < limits.disk_free_bytes_min:
        return False
    if level.elsewhere and owner.site is not None and node.site == owner.site:
        return False  # a fire would destroy both
    return node.name == group.current or (not node.cordoned and node.cpu_ratio <= limits.cpu_ratio_max)


def _links(
    nodes: Sequence[BackupNode], limits: BackupLimits, between_sites: Mapping[frozenset[str], float]
) -> list[Link]:
    """Returns the links between nodes and sites. No node's name has a space, so a site is never taken for a
    node.

    Lines of which nothing is known are one for each site, not one for each pair of sites: 200 sites have
    19,900 pairs.
    """
    sites = {node.name: node.site or node.name for node in nodes}
    own = limits.bytes_per_s_max or SITE_BYTES_PER_S
    links = [Link(name, f"site {site}", own) for name, site in sites.items()]
    there = sorted(set(sites.values()))
    links += [Link(f"site {site}", "between sites", SITE_BYTES_PER_S) for site in there]
    known = sorted((sorted(pair), rate) for pair, rate in between_sites.items() if pair <= set(there))
    return links + [Link(f"site {a}", f"site {b}", rate) for (a, b), rate in known]
