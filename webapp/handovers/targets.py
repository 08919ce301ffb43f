"""Chooses where a group is restored, unless a person chooses."""

from __future__ import annotations

from collections.abc import Collection

from pipeline_runtime.placement.choose import NoPlacement
from webapp.placements.fleet import Fleet
from webapp.placements.group_state import GroupFacts, restore_refusal, standby_target
from webapp.placements.models import Deployment


def restoration_target(
    deployment: Deployment,
    group: GroupFacts,
    fleet: Fleet,
    without: Collection[str] = (),
    only: Collection[str] | None = None,
) -> tuple[str | None, str | None]:
    """Returns (node, None), or (None, why the group cannot be restored now).

    Chooses the node of the hot standby, or else the planned node, or else the node that a deployment would
    choose. Places the group at any cost, because it does not run now. Takes nodes in `without` only if no
    other node can take the group. With `only`, takes no other nodes.
    """
    refusal = restore_refusal(group)
    if refusal is not None:
        return None, refusal
    never = frozenset() if only is None else fleet.rows.keys() - set(only)
    for tried in ({*without, *never}, never) if without else (never,):
        node = standby_target(group, tried)
        if node is not None:
            return node, None
        try:
            found = fleet.target(
                deployment, group.group, without=tried, planned=group.recovery_node, at_any_cost=True
            )
            return found.node, None
        except NoPlacement as error:
            refusal = error.faults[0].message
    return None, refusal
