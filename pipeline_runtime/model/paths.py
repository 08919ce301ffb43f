"""Paths into a JSON value: `a.b`, `a[0].b`, `["a field.with dots"].b`, and `$.a` from the whole record.

Within `["…"]`, `\\"` stands for a quote and `\\\\` for a backslash.
"""

from __future__ import annotations

import re
from typing import Any

Path = tuple[str | int, ...]
"""Names of fields and places in arrays, from outside to inside."""

ROOT = -1
"""As a path's first step, written as `$`: the path begins at the whole record, and not at one of its rows.
No place in an array is negative, and any text may be the name of a field: `["$"]` is the field `$`."""
KEY, HEADER = -2, -3
"""As a path's only step: the record's key, as text. As the first of two: the record's header of that name."""
STEPS_MAX = 20

_STEP = re.compile(
    r'\.?(?P<name>[^.\[\]"]+)|\[(?P<place>\d{1,6})\]|\["(?P<quoted>(?:[^"\\]|\\.)*)"\]', re.DOTALL
)
_ESCAPED = re.compile(r'\\(["\\])')


def parse_path(text: str) -> Path:
    """Returns the path that a user wrote. Raises ValueError with words for the user."""
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (at == 0 and text.startswith(".")):
            raise ValueError(f'"{text}" is no path: write a.b, a[0].b, or ["a name with dots"].b')
        steps.append(_step(found, is_first=at == 0))
        at = found.end()
    if not steps:
        raise ValueError("a path names at least one field")
    if len(steps) > STEPS_MAX:
        raise ValueError(f"a path has at most {STEPS_MAX} steps")
    return tuple(steps)


def _step(found: re.Match[str], *, is_first: bool) -> str | int:
    if found["place"] is not None:
        return int(found["place"])
    if found["quoted"] is not None:
        return _ESCAPED.sub(r"\1", found["quoted"])
    return ROOT if is_first and found["name"] == "$" else found["name"]


def value_at(row: Any, whole: Any, path: Path) -> Any:
    """Returns what lies at the path in a row, or in the `whole` record. Returns None where nothing lies."""
    found, steps = (whole, path[1:]) if path[:1] == (ROOT,) else (row, path)
    for step in steps:
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and 0 <= step < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) else None
        if found is None:
            return None
    return found
