"""How long an operation waits, and what it says that it waits for. Pure."""

from __future__ import annotations

from workers.control.operations.model import Answer, Enter, GroupSeen, Observed, Progress, Wait
from workers.control.operations.phases import OperationPhase

P = OperationPhase
LIMIT_MS: dict[OperationPhase, int] = {
    P.PLACE: 90_000,
    P.TOPICS: 30_000,
    P.START: 90_000,
    P.RUN: 180_000,
    P.ORDER: 180_000,
    P.OWN: 180_000,
    P.READ: 600_000,  # a group that lags has to catch up
    P.SETTLE: 90_000,  # longer than Kafka may take to answer an operation that is under way
    P.RETIRE: 40_000,
    # Without a row that is delivered. It is longer than a connector waits between two tries, and than a node
    # needs to start again.
    P.DELIVER: 90_000,
    P.STOP: 30_000,
    P.DELETE: 30_000,
}
"""How long a phase may take. The other phases wait for nobody."""
ERROR_MS_MAX = 10_000
"""A replica that has shown an error for this long, although its node restarts it, has failed."""
HEARD_MS = 90_000
"""Nodes that were started together with control have come up this long after it began to hear nodes."""
ASK_AGAIN_MS = 1_000
"""The pause after Kafka did not answer, or refused."""
NAMED_MAX = 3
"""How many things that it waits for are named. The others are counted."""


def enter(phase: OperationPhase, now_ms: int) -> Enter:
    limit_ms = LIMIT_MS.get(phase)
    return Enter(phase, None if limit_ms is None else now_ms + limit_ms)


def in_vain(progress: Progress, seen: Observed, now_ms: int) -> bool:
    """Returns whether the phase's time is over, and everything that came until then is known."""
    if progress.deadline_ms is None:
        return False
    return is_over(progress.deadline_ms, min(HEARD_MS, LIMIT_MS[progress.phase]), seen, now_ms)


def is_over(at_ms: int, heard_ms: int, seen: Observed, now_ms: int) -> bool:
    return seen.heard_since_ms is not None and now_ms >= max(at_ms, seen.heard_since_ms + heard_ms)


def has_failed(each: GroupSeen, progress: Progress, seen: Observed, now_ms: int) -> bool:
    """Returns whether the group has shown an error for too long."""
    since_ms = progress.failing.get(each.group)
    if each.error is None or since_ms is None:
        return False
    return is_over(since_ms + ERROR_MS_MAX, min(ERROR_MS_MAX, HEARD_MS), seen, now_ms)


def wait(seen: Observed, *parts: str) -> Wait:
    more = f"; and {len(parts) - NAMED_MAX} more" if len(parts) > NAMED_MAX else ""
    what = "; ".join(parts[:NAMED_MAX]) + more
    return Wait(what if seen.heard_since_ms is not None else f"{what}. Nodes cannot be heard: Redis is away")


def asked_long_enough(progress: Progress, now_ms: int) -> bool:
    return progress.deadline_ms is not None and now_ms >= progress.deadline_ms


def asks_again(answer: Answer, now_ms: int) -> bool:
    return not 0 <= now_ms - answer.at_ms < ASK_AGAIN_MS  # it is below 0 if the clock was set back
