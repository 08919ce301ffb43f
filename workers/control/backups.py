"""Which node holds the checkpoints of which group beside the central store, as the database stands now."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.model.desired import BackupPlace, DesiredReplica, Role
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.placement.backup import BackupCandidate, BackupLimits, GroupToBackUp, choose_backups
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement, Replica
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.messages import CENTRAL

RATE_OF = 5
"""Checkpoints over which a group's average rate is taken."""


@dataclass(frozen=True)
class BackupPlan:
    places: dict[str, BackupPlace] = field(default_factory=dict)  # group id -> its backup node

    def applied(self, replica: DesiredReplica, node: str) -> DesiredReplica:
        """With where an owner's checkpoints go, and where one is to be had without the central store."""
        place = self.places.get(replica.spec.id)
        if place is None or place.node == node:  # its own database is looked into anyway
            return replica
        update: dict[str, object] = {"backup": place} if replica.role is Role.OWNER else {}
        if replica.source is not None and replica.source.url == CENTRAL:
            update["source"] = replica.source.model_copy(update={"fallbacks": (place.url,)})
        return replica.model_copy(update=update)

    def keeps(self, node: str) -> tuple[str, ...]:
        return tuple(sorted(group for group, place in self.places.items() if place.node == node))


class Backups:
    """Remembers its choice, so that a backup stays where it is; after a restart the nodes' own reports
    say where that was."""

    def __init__(self, context: ControlContext, bulkhead: Bulkhead) -> None:
        settings = context.settings
        self._central = context.central
        self._bulkhead = bulkhead
        self._limits = BackupLimits(
            cpu_ratio_max=context.tuning.backup_cpu_ratio_max,
            disk_free_bytes_min=2 * settings.disk_reserve_mb * 1_000_000,
            bytes_per_s_max=settings.checkpoint_mb_s * 1_000_000 or None,
        )
        self._chosen: dict[str, str | None] = {}

    def plan(self) -> BackupPlan:
        nodes = {node.name: node for node in Node.objects.exclude(url="")}
        groups = [
            self._group(placement)
            for placement in GroupPlacement.objects.select_related("node").filter(
                deployment__status__in=Deployment.ACTIVE, role="owner"
            )
        ]
        candidates = [self._candidate(node) for node in nodes.values()]
        self._chosen = choose_backups(groups, candidates, self._limits)
        return BackupPlan(
            {
                group: BackupPlace(node=name, url=nodes[name].url)
                for group, name in self._chosen.items()
                if name is not None
            }
        )

    def _candidate(self, node: Node) -> BackupCandidate:
        alert = (
            f"The load of {node.name} cannot be read: what is backed up there stays, nothing new goes there."
        )
        with self._bulkhead.only(f"reading the load of {node.name}", alert, node.name):
            return _candidate(node)
        return BackupCandidate(name=node.name, up=node.up, cordoned=True, disk_free_bytes=sys.maxsize)

    def _group(self, placement: GroupPlacement) -> GroupToBackUp:
        group, owner = f"{placement.deployment_id}.{placement.group}", placement.node.name
        called = document_group(placement.group)
        alert = f"The size of {called} on {owner} cannot be read: its backup stays where it is."
        with self._bulkhead.only(f"reading the size of {group}", alert, owner):
            return self._measured(placement, group)
        return GroupToBackUp(group=group, owner=owner, current=self._chosen.get(group))

    def _measured(self, placement: GroupPlacement, group: str) -> GroupToBackUp:
        try:
            manifests = self._central.manifests(group)[:RATE_OF]
        except CheckpointError:
            manifests = ()  # the central store is being mended
        current = self._chosen[group] if group in self._chosen else _reported(placement)
        return GroupToBackUp(
            group=group,
            owner=placement.node.name,
            bytes_total=manifests[0].bytes_total if manifests else 0,
            bytes_per_s=rate(manifests),
            current=current,
        )


def rate(manifests: tuple[Manifest, ...]) -> float:
    """Bytes per second that these checkpoints (newest first) brought anew; the oldest only begins it."""
    if len(manifests) < 2:
        return 0.0
    seconds = (manifests[0].created_at_ms - manifests[-1].created_at_ms) / 1000
    return sum(manifest.bytes_new for manifest in manifests[:-1]) / seconds if seconds > 0 else 0.0


def _candidate(node: Node) -> BackupCandidate:
    load = node.load or {}
    return BackupCandidate(
        name=node.name,
        up=node.up,
        cordoned=not node.takes_new,
        site=node.site or None,
        cpu_ratio=float(load.get("cpu_ratio") or 0.0),
        disk_free_bytes=int(load.get("disk_free_bytes") or 0),
    )


def _reported(placement: GroupPlacement) -> str | None:
    """Where the owner said that its newest checkpoint lies."""
    row = Replica.objects.filter(
        deployment=placement.deployment_id, group=placement.group, node=placement.node_id
    ).first()
    places = (row.status.get("checkpoint_where") or ()) if row is not None else ()
    return next((place for place in places if place not in (CENTRAL, placement.node.name)), None)
