"""When what control has ordered by itself is tried again after a failure: of drains and restorations both.

Pure: the tries stand in the database as handovers, so a control process that has just been started decides
as the one before it would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

TRIES_MAX = 5
TRY_AGAIN_S = 5.0
"""After the first that failed; twice as long after each further one."""


@dataclass(frozen=True)
class Attempt:
    """A handover that was ordered by itself and did not succeed."""

    target: str  # a node
    why: str  # it failed, as a sentence
    ended_at: datetime
    cancelled: bool = False  # by a user
    stops: bool = False  # each try stops the element for a while


@dataclass(frozen=True)
class Now:
    without: frozenset[str]  # targets at which it has failed: others are better, while there are any


@dataclass(frozen=True)
class Later:
    at: datetime
    why: str  # without its full stop


@dataclass(frozen=True)
class GivenUp:
    """It is left to people."""

    why: str  # and what to do, without its full stop
    cancelled: bool = False  # a user wanted that


def tries_again(
    attempts: Sequence[Attempt], now: datetime, *, doing: str, anew: str
) -> Now | Later | GivenUp:
    """`attempts`: those since it was ordered, newest first. `doing`: "move"; `anew`: what a person does to
    have it tried anew, such as "drain edge-a again"."""
    if any(attempt.cancelled for attempt in attempts):
        return GivenUp(f"its {doing} was cancelled; {anew} to try anew", cancelled=True)
    if not attempts:
        return Now(frozenset())
    newest = attempts[0]
    why = f"its {doing} to {newest.target} failed: {newest.why}"
    if newest.stops:
        return GivenUp(f"{why} Each try stops it for a while; {anew} to try anew")
    if len(attempts) >= TRIES_MAX:
        return GivenUp(f"{why} Tried {len(attempts)} times; mend the cause, then {anew}")
    at = newest.ended_at + timedelta(seconds=TRY_AGAIN_S * 2 ** (len(attempts) - 1))
    if now < at:
        return Later(at, f"{why} It is tried again")
    return Now(frozenset(attempt.target for attempt in attempts))
