"""The limits of alarms, as walls draw them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webapp.walls.schemas import Limits

_ABOVE, _BELOW = "above", "below"
_THRESHOLD_SIDES = {">": _ABOVE, ">=": _ABOVE, "<": _BELOW, "<=": _BELOW}


def limits_of(elements: Sequence[Mapping[str, Any]], id: str) -> Limits | None:
    """Returns the limit of the alarm with that id, or None if there is no such alarm."""
    found = next((element for element in elements if element.get("id") == id), None)
    params = found.get("params") if found is not None else None
    if found is None or not isinstance(params, Mapping):
        return None
    if found.get("type") == "hysteresis-alarm":
        return _on(params.get("direction", _ABOVE), params.get("raise_at"))
    if found.get("type") == "threshold-alert":
        return _on(_THRESHOLD_SIDES.get(params.get("operator", ">")), params.get("limit"))
    return None


def _on(side: Any, value: Any) -> Limits | None:
    if side not in (_ABOVE, _BELOW) or not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return {"low": value if side == _BELOW else None, "high": value if side == _ABOVE else None}
