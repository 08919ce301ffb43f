"""Plans which node keeps a backup of which group's checkpoints, and on which node each group would be
restored.

The plan is made by `placement.backup`, from what the database has.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from time import monotonic

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.model.desired import BackupPlace, DesiredReplica, Role
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.placement.backup import BackupLimits, BackupNode, GroupToBackUp, plan_backups
from pipeline_runtime.placement.needs import CORES_MIN, part_of
from webapp.nodes.links import site_links
from webapp.nodes.models import Node
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import rows_per_s
from webapp.placements.models import Deployment, GroupPlacement, Replica
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.messages import CENTRAL

RATE_OF = 5
"""A group's rate is the mean over this many checkpoints."""
REPLAN_S = 30.0
"""How often the plan follows load, sizes and rates. It follows nodes, sites and owners at once."""


@dataclass(frozen=True)
class BackupPlan:
    places: dict[str, BackupPlace] = field(default_factory=dict)  # group id -> its backup node

    def applied(self, replica: DesiredReplica, node: str) -> DesiredReplica:
        """Returns the replica with the places to which it sends its checkpoints, and with the places to fetch
        one from if the central store is away."""
        place = self.places.get(replica.spec.id)
        if place is None or place.node == node:  # the node looks into its own database anyway
            return replica
        update: dict[str, object] = {"backup": place} if replica.role is Role.OWNER else {}
        if replica.source is not None and replica.source.url == CENTRAL:
            update["source"] = replica.source.model_copy(update={"fallbacks": (place.url,)})
        return replica.model_copy(update=update)

    def keeps(self, node: str) -> tuple[str, ...]:
        return tuple(sorted(group for group, place in self.places.items() if place.node == node))


class Backups:
    """Plans the backups. The placements store the plan, so a restart of control moves no backup."""

    def __init__(self, context: ControlContext, bulkhead: Bulkhead) -> None:
        settings = context.settings
        self._central = context.central
        self._bulkhead = bulkhead
        self._limits = BackupLimits(
            cpu_ratio_max=context.tuning.backup_cpu_ratio_max,
            disk_free_bytes_min=2 * settings.disk_reserve_mb * 1_000_000,
            bytes_per_s_max=settings.checkpoint_mb_s * 1_000_000 or None,
        )
        self._planned_for: object = None
        self._planned_at_s = float("-inf")
        self._stores: dict[str, str] = {}  # group id -> its backup node

    def plan(self) -> BackupPlan:
        nodes = list(Node.objects.exclude(url=""))
        placements = list(
            GroupPlacement.objects.defer("spec")
            .select_related("node", "deployment__version")
            .filter(deployment__status__in=Deployment.ACTIVE, role="owner")
        )
        seen = (
            {(node.name, node.up, node.takes_new, node.site) for node in nodes},
            {(_id(placement), placement.node_id) for placement in placements},
        )
        if seen != self._planned_for or monotonic() - self._planned_at_s > REPLAN_S:
            self._replan(nodes, placements)
            self._planned_for, self._planned_at_s = seen, monotonic()
        urls = {node.name: node.url for node in nodes}
        return BackupPlan(
            {
                group: BackupPlace(node=name, url=urls[name])
                for group, name in self._stores.items()
                if name in urls
            }
        )

    def _replan(self, nodes: list[Node], placements: list[GroupPlacement]) -> None:
        known = [self._node(node) for node in nodes]
        cpu = _cpu_of_groups(known)
        fleet = Fleet()
        groups = [
            replace(
                self._group(placement, cpu.get(_id(placement), CORES_MIN)),
                apart_from=fleet.apart_nodes(placement.deployment, placement.group),
            )
            for placement in placements
        ]
        found = plan_backups(groups, known, self._limits, _between_sites())
        for placement in placements:
            backup = found[_id(placement)]
            planned = {"backup_node": backup.store or "", "recovery_node": backup.redeploy or ""}
            if planned != {name: getattr(placement, name) for name in planned}:
                GroupPlacement.objects.filter(pk=placement.pk).update(**planned)
        self._stores = {group: backup.store for group, backup in found.items() if backup.store is not None}

    def _node(self, node: Node) -> BackupNode:
        alert = f"The load of {node.name} cannot be read. Its backups stay there, and nothing new goes there."
        with self._bulkhead.only(f"reading the load of {node.name}", alert, node.name):
            return _node(node)
        return BackupNode(name=node.name, up=node.up, cordoned=True, disk_free_bytes=sys.maxsize)

    def _group(self, placement: GroupPlacement, cpu: float) -> GroupToBackUp:
        group, owner = _id(placement), placement.node.name
        called = document_group(placement.group)
        alert = f"The size of {called} on {owner} cannot be read. Its backup stays where it is."
        with self._bulkhead.only(f"reading the size of {group}", alert, owner):
            return self._measured(placement, cpu)
        return GroupToBackUp(
            group=group,
            owner=owner,
            current=placement.backup_node or None,
            redeploy=placement.recovery_node or None,
        )

    def _measured(self, placement: GroupPlacement, cpu: float) -> GroupToBackUp:
        try:
            manifests = self._central.manifests(_id(placement))[:RATE_OF]
        except CheckpointError:
            manifests = ()  # the central store is being repaired
        return GroupToBackUp(
            group=_id(placement),
            owner=placement.node.name,
            bytes_total=manifests[0].bytes_total if manifests else 0,
            bytes_per_s=rate(manifests),
            cpu=cpu,
            current=placement.backup_node or _reported(placement),
            redeploy=placement.recovery_node or None,
        )


def _id(placement: GroupPlacement) -> str:
    return f"{placement.deployment_id}.{placement.group}"


def _between_sites() -> dict[frozenset[str], float]:
    """Returns the measured bytes/s between two sites, in the slower direction."""
    found: dict[frozenset[str], float] = {}
    for link in site_links():
        if link.bytes_per_s is not None:
            sites = frozenset((link.a, link.b))
            found[sites] = min(link.bytes_per_s, found.get(sites, link.bytes_per_s))
    return found


def _cpu_of_groups(nodes: list[BackupNode]) -> dict[str, float]:
    """Returns the cores that each group takes. A node's load is shared among its groups by their rows.

    There is no closer measurement.
    """
    rows: dict[str, dict[str, float]] = {}  # node -> group id -> rows/s
    owners = Replica.objects.filter(role="owner", deployment__status__in=Deployment.ACTIVE)
    for replica in owners.select_related("node"):
        group = f"{replica.deployment_id}.{replica.group}"
        rows.setdefault(replica.node.name, {})[group] = rows_per_s(replica.rates)
    found: dict[str, float] = {}
    for node in nodes:
        shares = rows.get(node.name, {})
        cores, there = node.cores * node.cpu_ratio, list(shares.values())
        found |= {group: max(CORES_MIN, cores * part_of(rows, there)) for group, rows in shares.items()}
    return found


def rate(manifests: tuple[Manifest, ...]) -> float:
    """Returns the new bytes per second in these checkpoints, newest first.

    Of the oldest checkpoint, only the time counts.
    """
    if len(manifests) < 2:
        return 0.0
    seconds = (manifests[0].created_at_ms - manifests[-1].created_at_ms) / 1000
    return sum(manifest.bytes_new for manifest in manifests[:-1]) / seconds if seconds > 0 else 0.0


def _node(node: Node) -> BackupNode:
    load = node.load or {}
    return BackupNode(
        name=node.name,
        up=node.up,
        cordoned=not node.takes_new,
        site=node.site or None,
        cores=node.cores,
        cpu_ratio=float(load.get("cpu_ratio") or 0.0),
        disk_free_bytes=int(load.get("disk_free_bytes") or 0),
    )


def _reported(placement: GroupPlacement) -> str | None:
    """Returns the node that has the owner's newest checkpoint, by the owner's report."""
    row = Replica.objects.filter(
        deployment=placement.deployment_id, group=placement.group, node=placement.node_id
    ).first()
    places = (row.status.get("checkpoint_where") or ()) if row is not None else ()
    return next((place for place in places if place not in (CENTRAL, placement.node.name)), None)
