"""The copies of a group beside its owner, and how a new one is numbered."""

from __future__ import annotations

from webapp.placements.models import ExtraReplica, GroupPlacement, Replica

STANDBY = "standby"


def next_generation(deployment: str, group: str) -> int:
    """Returns a higher generation than any copy of this group ever had, so that no node takes old state for
    new."""
    placements = GroupPlacement.objects.filter(deployment=deployment, group=group)
    extras = ExtraReplica.objects.filter(deployment=deployment, group=group)
    rows = Replica.objects.filter(deployment=deployment, group=group)
    generations: list[int] = []
    for found in (placements, extras, rows):
        generations += found.values_list("generation", flat=True)
    return max(generations, default=0) + 1


def standbys(deployment: str, group: str) -> list[ExtraReplica]:
    """Returns the wanted standbys, by node's name."""
    rows = ExtraReplica.objects.filter(deployment=deployment, group=group, role=STANDBY)
    return list(rows.select_related("node").order_by("node__name"))
