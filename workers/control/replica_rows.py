"""The database row of a replica, from a node's report."""

from __future__ import annotations

import logging

from django.db.models import Max
from django.utils import timezone
from pydantic import ValidationError

from pipeline_runtime.model.desired import ReplicaStatus, joined_ends
from pipeline_runtime.model.ids import Epoch
from webapp.placements.models import ConnectorGaps, GroupPlacement, Replica
from webapp.placements.selectors import java_ends
from workers.control.bulkhead import reason

log = logging.getLogger(__name__)


def reported(row: Replica | None) -> ReplicaStatus | None:
    """Returns the newest status that the node reported.

    Returns None if it reported nothing, or nothing that can be read. The node's next report replaces the row.
    """
    if row is None:
        return None
    try:
        return ReplicaStatus.model_validate(row.status)
    except ValidationError as error:
        group = f"{row.deployment_id}.{row.group}"
        log.warning("The last report of %s cannot be read and counts as none: %s", group, reason(error))
        return None


def epoch_known(placement: GroupPlacement) -> Epoch:
    """Returns the newest epoch that a copy of the group has reported, or 0 if none has."""
    rows = Replica.objects.filter(deployment=placement.deployment_id, group=placement.group)
    return Epoch(rows.aggregate(newest=Max("epoch"))["newest"] or 0)


def note_new_state(deployment: str, group: str, status: ReplicaStatus) -> None:
    """Keeps where the group's state began fresh.

    A copy that has just started reports 0 until it has read it.
    """
    rows = GroupPlacement.objects.filter(deployment=deployment, group=group, fresh_from__lt=status.fresh_from)
    rows.update(fresh_from=status.fresh_from)


def note_gaps(deployment: str, element: str, node: str, counter: str, times: int, rows: int) -> None:
    """Keeps what a counter of a node has counted of an element's gaps, unless more is known of it."""
    kept, new = ConnectorGaps.objects.get_or_create(
        deployment_id=deployment,
        element=element,
        node=node,
        counter=counter,
        defaults={"times": times, "rows": rows},
    )
    if not new and (times > kept.times or rows > kept.rows):
        kept.times, kept.rows = max(times, kept.times), max(rows, kept.rows)
        kept.at = timezone.now()
        kept.save(update_fields=["times", "rows", "at"])


def note_java_ends(deployment: str, group: str, status: ReplicaStatus) -> None:
    """Keeps a node's reports of ends of Spark's Java process, for the nodes that run the group after it.

    A report that is older than what a user has decided since changes nothing.
    """
    rows = GroupPlacement.objects.filter(deployment=deployment, group=group, vouched=status.vouched)
    placement = rows.first()
    if placement is None:
        return
    before = java_ends(placement)
    ends = joined_ends(before, status.java_ends)
    if ends != before:
        rows.update(java_ends=[end.model_dump(mode="json") for end in ends])
