"""Chooses the backup node of each group: who holds its checkpoints beside the central store. Pure.

Under limits of load, bandwidth and disk, groups with the most to send first, as in N. Iijima,
K. Amemiya, J. Ogawa, H. Miyoshi, "Deciding Backup Location Methods for Distributed Stream Processing
System", ICICT 2020, doi:10.1109/ICICT50521.2020.00047: sorting servers and tasks by load and bandwidth
comes close to the optimum at a fraction of a solver's cost. Added here: another site is better than
the owner's, and a choice stays as long as it is allowed, since moving a backup sends all of it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class BackupCandidate:
    """A registered node as this choice sees it."""

    name: str
    up: bool
    cordoned: bool = False  # takes nothing new
    site: str | None = None  # where it stands; None: nobody has said
    cpu_ratio: float = 0.0
    disk_free_bytes: int = 0


@dataclass(frozen=True)
class GroupToBackUp:
    group: str
    owner: str  # its node
    bytes_total: int = 0  # of its newest checkpoint
    bytes_per_s: float = 0.0  # that its checkpoints send, on average
    current: str | None = None  # where its backup lies now


@dataclass(frozen=True)
class BackupLimits:
    cpu_ratio_max: float = 0.9
    disk_free_bytes_min: int = 1_000_000_000
    bytes_per_s_max: float | None = None  # that one node receives; None: no limit


@dataclass
class _Room:
    """What a node has left, as groups are given to it."""

    node: BackupCandidate
    disk_bytes: int
    bytes_per_s: float = 0.0
    groups: int = 0

    def take(self, group: GroupToBackUp) -> None:
        self.disk_bytes -= group.bytes_total
        self.bytes_per_s += group.bytes_per_s
        self.groups += 1


def choose_backups(
    groups: Iterable[GroupToBackUp], candidates: Iterable[BackupCandidate], limits: BackupLimits
) -> dict[str, str | None]:
    """Group -> node; None: no node may take it, it has the central store alone.

    The same arguments give the same answer: equals are taken by name.
    """
    rooms = {node.name: _Room(node, node.disk_free_bytes) for node in candidates}
    chosen: dict[str, str | None] = {}
    waiting: list[GroupToBackUp] = []
    for group in sorted(groups, key=lambda group: (-group.bytes_per_s, group.group)):
        if group.current is not None and _stays(group, rooms, limits):
            chosen[group.group] = group.current
            rooms[group.current].take(_sent(group))
        else:
            waiting.append(group)
    for group in waiting:
        able = [room for room in rooms.values() if _may_take(group, room, limits)]
        best = min(able, key=lambda room: _rank(group, room, rooms), default=None)
        chosen[group.group] = best.node.name if best is not None else None
        if best is not None:
            best.take(group)
    return chosen


def _stays(group: GroupToBackUp, rooms: dict[str, _Room], limits: BackupLimits) -> bool:
    """Load comes and goes, and does not move a backup; what makes it useless does."""
    room = rooms.get(str(group.current))
    if room is None or not room.node.up or group.current == group.owner:
        return False
    if room.disk_bytes < limits.disk_free_bytes_min:
        return False
    return not _same_site(group, room, rooms) or not any(
        _may_take(group, other, limits) and not _same_site(group, other, rooms) for other in rooms.values()
    )


def _may_take(group: GroupToBackUp, room: _Room, limits: BackupLimits) -> bool:
    node, rate = room.node, room.bytes_per_s + group.bytes_per_s
    return (
        node.up
        and not node.cordoned
        and node.name != group.owner
        and node.cpu_ratio <= limits.cpu_ratio_max
        and room.disk_bytes - group.bytes_total >= limits.disk_free_bytes_min
        and (limits.bytes_per_s_max is None or rate <= limits.bytes_per_s_max)
    )


def _rank(group: GroupToBackUp, room: _Room, rooms: dict[str, _Room]) -> tuple[bool, float, int, float, str]:
    """The least is the best: another site, then the one that receives, holds and computes least."""
    node = room.node
    return (_same_site(group, room, rooms), room.bytes_per_s, room.groups, node.cpu_ratio, node.name)


def _same_site(group: GroupToBackUp, room: _Room, rooms: dict[str, _Room]) -> bool:
    """What burns down with one burns down with the other; nodes without a site are told apart."""
    owner = rooms.get(group.owner)
    return owner is not None and owner.node.site is not None and owner.node.site == room.node.site


def _sent(group: GroupToBackUp) -> GroupToBackUp:
    """One whose bytes lie there already: the node's free disk is without them."""
    return GroupToBackUp(group.group, group.owner, 0, group.bytes_per_s, group.current)
