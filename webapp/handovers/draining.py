"""Says why groups leave a node that is drained or leaving, and how far that has come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.nodes.schemas import DrainProgress
from webapp.placements.models import Deployment, GroupPlacement

Group = tuple[str, str]
"""(deployment, group)"""


def drain_reason(node: str) -> str:
    """Returns the `Handover.reason` of the moves off a node that is drained."""
    return f"drain of {node}"


def leave_reason(node: str) -> str:
    """Returns the `Handover.reason` of the moves off a node that was told to stop."""
    return f"shutdown of {node}"


@dataclass(frozen=True)
class Move:
    group: Group
    pipeline: str
    element: str
    target: str
    outcome: str | None  # None while it is running

    @property
    def done(self) -> bool:
        return self.outcome == Handover.Outcome.DONE


def progress(placed: Collection[Group], moves: Iterable[Move]) -> DrainProgress:
    """Returns how far a drain has come. Pure.

    `placed` holds the groups that still have to run on the node. `moves` holds the moves off the node since
    the drain began. A group that was moved away and has come back counts as still here. A group that moves
    right now counts once, wherever it is placed.
    """
    all_moves = list(moves)
    moving = next((move for move in all_moves if move.outcome is None), None)
    under_way = {move.group for move in all_moves if move.outcome is None}
    left = set(placed) | under_way
    moved = {move.group for move in all_moves if move.done} - left
    return {
        "moved": len(moved),
        "total": len(moved | left),
        "moving": None
        if moving is None
        else {"pipeline": moving.pipeline, "element": moving.element, "target": moving.target},
    }


def drains_now(nodes: Iterable[Node]) -> Mapping[str, DrainProgress]:
    """Returns node -> its progress, for nodes that are being drained or are leaving."""
    return {node.name: _of(node) for node in nodes if node.emptied_since is not None}


def _of(node: Node) -> DrainProgress:
    placed = GroupPlacement.objects.filter(node=node, deployment__status__in=Deployment.ACTIVE)
    since = Q(outcome__isnull=True) | Q(ended_at__gte=node.emptied_since)
    rows = Handover.objects.filter(since, origin=node.name, deployment__status__in=Deployment.ACTIVE)
    moves = [
        Move((row[0], row[1]), *row[2:])
        for row in rows.order_by("created_at").values_list(
            "deployment", "group", "deployment__pipeline__name", "element", "target", "outcome"
        )
    ]
    return progress(set(placed.values_list("deployment", "group")), moves)
