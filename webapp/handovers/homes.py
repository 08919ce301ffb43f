"""Says where elements belong, and why they run elsewhere: after a drain, a failure or a policy's move.

An element belongs where the draft pins it. An element without a pin belongs where it ran before drains and
failures moved it away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_runtime.model.ids import document_group
from webapp.handovers.draining import drain_reason, leave_reason
from webapp.handovers.models import Handover
from webapp.pipelines.pins import pins_of
from webapp.pipelines.schemas import Elsewhere
from webapp.pipelines.shape import elements_of, groups_of
from webapp.placements.group_state import GroupFacts

READ_MAX = 500
"""The newest handovers that are looked at, for all pipelines together."""


@dataclass(frozen=True)
class Moved:
    """A handover that is done."""

    origin: str
    target: str
    restores: bool
    reason: str  # empty if a person moved this very element
    by: str | None
    at: str | None

    @property
    def forced(self) -> bool:
        """Whether nobody chose the target for its own sake: the origin was drained, stopped or had failed."""
        emptied = (drain_reason(self.origin), leave_reason(self.origin))
        return self.restores or self.reason in emptied

    @property
    def why(self) -> str:
        if self.restores:
            return f"{self.by} restored it" if self.by else f"{self.origin} fell silent"
        if self.reason == drain_reason(self.origin):
            return f"{self.origin} was drained"
        if self.reason == leave_reason(self.origin):
            return f"{self.origin} was stopped"
        if self.reason:
            return f"the {self.reason} moved it" if self.reason.startswith("policy ") else self.reason
        return f"{self.by or 'somebody'} moved it"


def moved_groups(deployments: Collection[str]) -> dict[str, dict[str, list[Moved]]]:
    """Returns deployment -> group of its document -> the handovers that are done, newest first."""
    rows = Handover.objects.filter(deployment__in=deployments, outcome=Handover.Outcome.DONE)
    found: dict[str, dict[str, list[Moved]]] = {}
    for row in rows.order_by("-ended_at").values_list(
        "deployment", "group", "origin", "target", "kind", "reason", "created_by__username", "ended_at"
    )[:READ_MAX]:
        deployment, group, origin, target, kind, reason, by, at = row
        moved = Moved(
            origin, target, kind == Handover.Kind.RESTORATION, reason, by, at.isoformat() if at else None
        )
        found.setdefault(deployment, {}).setdefault(document_group(group), []).append(moved)
    return found


def settled_places(groups: Iterable[GroupFacts]) -> dict[str, str]:
    """Returns group of the document -> its node. Leaves out groups that are moving."""
    return {
        document_group(group.group): group.node
        for group in groups
        if group.node is not None and group.handover is None
    }


def home_of(moves: Iterable[Moved]) -> str | None:
    """Returns the node that an element without a pin was moved away from, or None if it is where it was put.

    `moves` are newest first.
    """
    home = None
    for move in moves:
        if move.origin == move.target:  # a rewind
            continue
        if not move.forced or (home is not None and move.target != home):
            break
        home = move.origin
    return home


def elsewhere(
    draft: dict[str, Any],
    deployed: dict[str, Any],
    places: Mapping[str, str],
    moves: Mapping[str, Sequence[Moved]],
) -> list[Elsewhere]:
    """Returns the elements that do not run where they belong. `places`: group -> node."""
    pins = pins_of(draft)
    at_sites = {element["id"] for element in elements_of(draft) if isinstance(element.get("site"), str)}
    found: list[Elsewhere] = []
    for group, ids in groups_of(deployed).items():
        node, done = places.get(group), moves.get(group, ())
        decided = any(id in pins or id in at_sites for id in ids)
        before = None if decided else home_of(done)
        came = next((move for move in done if move.target == node), None)
        for id in ids:
            home = pins.get(id, before)
            if node is None or home is None or home == node:
                continue
            found.append(
                {
                    "element": id,
                    "home": home,
                    "pinned": id in pins,
                    "node": node,
                    "why": came.why if came else "the draft was changed since it was deployed",
                    "at": came.at if came else None,
                }
            )
    return found
