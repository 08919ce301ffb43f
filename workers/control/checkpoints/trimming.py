"""Trims journals and streams from time to time, up to the oldest retained checkpoints.

Only control can do this: it knows which checkpoints the central store has, which group reads which topic, and
where each replica stands. `checkpoint.trimming` decides.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from django.utils import timezone

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.store import read_file
from pipeline_runtime.checkpoint.trimming import Kept, Point, TrimGroup, journal_mark, trim_points
from pipeline_runtime.journal.grants import grants_from
from pipeline_runtime.kafka.admin import trim_topics
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from webapp.moments import ms_of_moment
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement, Replica
from workers.control.periodic import Periodic

log = logging.getLogger(__name__)

WAITED_FOR = timedelta(hours=1)
"""A replica that has failed, or whose node is away, stops the trimming for so long.

If its local state is too old afterwards, the replica starts from a checkpoint.
"""


class Trimmer(Periodic):
    """Trims the topics. If it fails, it tries again the next time, and the topics stay longer until then."""

    name, failure = "trim", "nothing was trimmed this time"

    def look(self) -> None:
        self.trim()

    def trim(self) -> dict[Point, int]:
        """Trims once. Returns how many offsets were deleted in each partition."""
        groups = []
        active = GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE)
        # After an upgrade that failed to connect elements in another way, other groups may continue from any
        # row.
        for placement in active.filter(deployment__left_over={}):
            groups.append(self._group(placement))
        trimmed = trim_topics(self._context.kafka, trim_points(groups))
        for (topic, partition), count in sorted(trimmed.items()):
            log.info("%s-%d: %d offsets that no checkpoint needs were trimmed", topic, partition, count)
        return trimmed

    def _group(self, placement: GroupPlacement) -> TrimGroup:
        spec = GroupSpec.model_validate(placement.spec)
        # This is read before the checkpoints. So a replica that is ordered meanwhile starts from a checkpoint
        # that is kept.
        replicas_at = _replicas_at(placement)
        kept = self._oldest(spec)
        if kept is not None and kept.journal_offset:
            granted = grants_from(self._context.kafka, spec.journal, kept.journal_offset)
            kept = replace(kept, granted_after=granted)
        former = tuple((each["topic"], each["until"]) for each in placement.former_inputs)
        return TrimGroup(spec, kept, replicas_at, former)

    def _oldest(self, spec: GroupSpec) -> Kept | None:
        manifests = self._context.central.manifests(spec.id)
        if not manifests:
            return None
        oldest = min(manifests, key=lambda manifest: manifest.seq)
        return Kept(oldest.seq, oldest.ends, self._journal_mark(oldest))

    def _journal_mark(self, manifest: Manifest) -> int | None:
        central, group = self._context.central, manifest.group
        try:
            content = read_file(manifest, "replica.json", lambda sha: central.get_chunk(group, sha))
        except CheckpointError as error:
            log.warning("the journal of %s is not trimmed: %s", group, error)
            return None
        return journal_mark(content, manifest.seq) if content is not None else None


def _replicas_at(placement: GroupPlacement) -> Seq | None:
    """Returns the lowest seq at which a wanted replica of the group stands, or None if one has not
    reported."""
    wanted: list[GroupPlacement | ExtraReplica] = [
        placement,
        *ExtraReplica.objects.filter(deployment=placement.deployment_id, group=placement.group),
    ]
    rows = {
        (row.node_id, row.generation): row
        for row in Replica.objects.filter(deployment=placement.deployment_id, group=placement.group)
    }
    long_ago = timezone.now() - WAITED_FOR
    left_out = set(Node.objects.filter(up=False, last_seen_at__lt=long_ago).values_list("pk", flat=True))
    left_out |= {row.node_id for row in rows.values() if _failed_before(row, long_ago)}
    waited_for = [
        rows.get((wish.node_id, wish.generation)) for wish in wanted if wish.node_id not in left_out
    ]
    seqs = [Seq(row.seq) if row is not None else None for row in waited_for]
    known = [seq for seq in seqs if seq is not None]
    return min(known) if known and len(known) == len(seqs) else None


def _failed_before(row: Replica, moment: datetime) -> bool:
    error = row.status.get("error")
    return bool(error) and error["at_ms"] < ms_of_moment(moment)
