"""Lets a stopped node run until control has moved its groups to other nodes, or its time is over.

    SIGTERM --> reports say leaving_until_ms --> control moves all away --> nothing is wanted here --> end

It does not wait in vain: it ends if control or Redis is away, or if control says that nothing of what is left
can be moved. What it still owns then stands still until it is started again, as after any stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from pipeline_runtime.model.desired import DesiredReplica, NodeDesired, ReplicaStatus, Role
from workers.stopping import Stopping

log = logging.getLogger(__name__)

LOOK_S = 0.5
AWAY_S = 5.0
"""How long a node waits for a control process that is away. What control says of itself lasts some seconds
longer than control, so the node also waits while control is only started again."""


@dataclass(frozen=True)
class Seen:
    """What a leaving node sees at one look."""

    elements: int  # which the node still holds
    stuck: bool  # control cannot move what is left
    away_s: float  # for how long control was not there
    over: bool  # whether its time is over


def elements_held(desired: NodeDesired, statuses: Iterable[ReplicaStatus]) -> int:
    """Returns how many elements need this node. Pure.

    It owns them or should, is about to be given them, or keeps for a moment the only state of them. A standby
    that only follows is not needed.
    """
    held = {replica.spec.id: len(replica.spec.elements) for replica in desired.replicas if _needed(replica)}
    held |= {part.group: 1 for part in desired.refused}  # nobody knows what is wanted of it
    known = {replica.spec.id: len(replica.spec.elements) for replica in desired.replicas}
    owned = {status.group for status in statuses if status.role is Role.OWNER}
    return sum((held | {group: known.get(group, 1) for group in owned}).values())


def _needed(replica: DesiredReplica) -> bool:
    return replica.role is not Role.STANDBY or replica.succeed is not None


def why_end(seen: Seen) -> str | None:
    """Returns why the node ends now, or None if it goes on waiting. Pure."""
    if not seen.elements:
        return "nothing is left here to hand over"
    left = f"{elements(seen.elements)} could not be handed over"
    if seen.stuck:
        return f"{left}: control finds no node that can take them"
    if seen.away_s >= AWAY_S:
        return f"{left}: control or Redis does not answer"
    return f"{left} in time" if seen.over else None


def leave(
    node: str,
    leave_s: float,
    stopping: Stopping,
    held: Callable[[], int],
    is_stuck: Callable[[], bool],
    control_is_there: Callable[[], bool],
) -> None:
    """Blocks until the node should end, then sets `stopping`. Returns early if that is set meanwhile."""
    began_s = heard_s = monotonic()
    left = held()
    if left:
        log.info(
            "node %s: %s being handed over, for %g s at most; Ctrl-C again (or another SIGTERM) ends at once",
            node,
            f"{elements(left)} {'is' if left == 1 else 'are'}",
            leave_s,
        )
    while not stopping.is_set():
        now_s = monotonic()
        if control_is_there():
            heard_s = now_s
        seen = Seen(held(), is_stuck(), now_s - heard_s, now_s - began_s >= leave_s)
        why = why_end(seen)
        if why is not None:
            log.info("node %s: it ends, %s", node, why)
            stopping.set()
            return
        if seen.elements != left:
            left = seen.elements
            log.info("node %s: %s left to hand over", node, elements(left))
        stopping.wait(LOOK_S)


def elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"
