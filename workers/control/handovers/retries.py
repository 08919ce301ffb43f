"""Decides when control repeats a failed order of its own: a move of a drain, or a restoration.

Pure: the tries are in the database, as handovers. So a control process that has just started decides as the
one before it would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

TRIES_MAX = 5
TRY_AGAIN_S = 5.0
"""The pause after the first failed try. After each further one it is twice as long."""


@dataclass(frozen=True)
class Attempt:
    """A handover that control ordered by itself and that did not succeed."""

    target: str  # a node
    why: str  # why it failed, as a sentence
    ended_at: datetime
    cancelled: bool = False  # by a user
    stops: bool = False  # whether each try stops the element for a while


@dataclass(frozen=True)
class Now:
    without: frozenset[str]  # targets at which it has failed; any other is better


@dataclass(frozen=True)
class Later:
    at: datetime
    why: str  # without a full stop


@dataclass(frozen=True)
class GivenUp:
    """Control does not try again: it is left to people."""

    why: str  # with what to do, without a full stop
    cancelled: bool = False  # because a user cancelled it


def tries_again(
    attempts: Sequence[Attempt], now: datetime, *, doing: str, by_hand: str
) -> Now | Later | GivenUp:
    """Returns whether the next try comes now, later or not at all.

    `attempts` are the failed tries since it was ordered, newest first. `doing` is for example "move".
    `by_hand` is what a person does to have it tried again, such as "drain edge-a again".
    """
    if any(attempt.cancelled for attempt in attempts):
        return GivenUp(f"its {doing} was cancelled; {by_hand} to try again", cancelled=True)
    if not attempts:
        return Now(frozenset())
    newest = attempts[0]
    why = f"its {doing} to {newest.target} failed: {newest.why}"
    if newest.stops:
        return GivenUp(f"{why} Each try stops it for a while; {by_hand} to try again")
    if len(attempts) >= TRIES_MAX:
        return GivenUp(f"{why} Tried {len(attempts)} times; mend the cause, then {by_hand}")
    at = newest.ended_at + timedelta(seconds=TRY_AGAIN_S * 2 ** (len(attempts) - 1))
    if now < at:
        return Later(at, f"{why} It is tried again")
    return Now(frozenset(attempt.target for attempt in attempts))
