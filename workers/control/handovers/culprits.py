"""Decides which element may be the cause of its nodes' failures. Pure.

A restored element goes on with the rows at which its node fell silent. If these rows made the node fail, they
make the next node fail, too, with everything else that runs there. So an element counts as a
suspect when it was restored on a node that fell silent soon afterwards, before the element had committed a
batch of its own there. If there is one suspect, it is held. If there are several, they start one after
another on their next nodes (`workers/node/java_ends.py`), so that the next node to fall silent tells which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline_runtime.model.desired import JavaEnd, WayOn

SOON = timedelta(minutes=10)
"""How soon after a restoration its node has to fall silent to be connected with it."""

Group = tuple[str, str]
"""A deployment and a group of it."""


@dataclass(frozen=True)
class Stay:
    """A restoration that control has ordered by itself."""

    group: Group
    origin: str  # a node that had fallen silent
    began_at: datetime
    came_through: bool  # the element has committed a batch of its own on the target
    reads: str = ""  # what the batch was reading that ran when the target was heard last
    skip: WayOn | None = None  # to go on behind that


def ends_of(group: Group, node: str, fell_at: datetime, stays: Iterable[Stay]) -> tuple[JavaEnd, ...]:
    """Returns the ends that the group may have caused, or () if it is no suspect. `node` fell silent at
    `fell_at`, and `stays` are the restorations to it."""
    suspects = {
        stay.group: stay
        for stay in stays
        if not stay.came_through and fell_at - SOON <= stay.began_at <= fell_at
    }
    stay = suspects.get(group)
    if stay is None:
        return ()
    return (
        JavaEnd(node=stay.origin, at_ms=_ms(stay.began_at) - 1, alone=False, silent=True),
        JavaEnd(
            node=node,
            at_ms=_ms(fell_at),
            alone=len(suspects) == 1,
            silent=True,
            reads=stay.reads,
            skip=stay.skip,
        ),
    )


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
