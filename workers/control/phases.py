"""The check with which handovers and operations enter their phases."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

P = TypeVar("P", bound=StrEnum)
Ways = Mapping[P, Mapping[P, str]]
"""Phase -> each phase that may follow it -> when it does."""


class PhaseOutOfTurn(RuntimeError):
    """A phase was to be entered that may not follow the present one: a fault in Fogline."""


def check_turn(ways: Ways[P], present: P, following: P) -> None:
    """Raises PhaseOutOfTurn if `following` may not follow `present`."""
    allowed = ways.get(present, {})
    if following not in allowed:
        names = ", ".join(allowed) or "none"
        raise PhaseOutOfTurn(f"{following} may not follow {present}. These may: {names}.")
