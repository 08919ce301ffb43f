"""The places of a reading that a person has fixed, with their values, as the browser sends them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

Fixed = Mapping[str, JsonValue]


def text_of(fixed: Fixed, place: str) -> str | None:
    value = fixed.get(place)
    return value if isinstance(value, str) else None


def whole_of(fixed: Fixed, place: str) -> int | None:
    """Returns the whole number above zero at this place, such as a line number, or None."""
    value = fixed.get(place)
    return value if isinstance(value, int) and value > 0 else None


def wholes_of(fixed: Fixed, place: str) -> tuple[int, ...] | None:
    """Returns the whole numbers above zero at this place, in their order, or None."""
    value = fixed.get(place)
    if not isinstance(value, list):
        return None
    return tuple(sorted({each for each in value if isinstance(each, int) and each > 0}))
