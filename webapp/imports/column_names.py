"""Names of columns as Fogline takes them, made of what stands in the header."""

from __future__ import annotations

import re
from collections.abc import Sequence

from webapp.imports.units import is_unit, without_unit

NAME_MAX = 120
_NOT_ALLOWED = re.compile(r"[`\x00-\x1f\x7f]")


def named(header: Sequence[str], units: Sequence[str], width: int) -> list[tuple[str, str | None]]:
    """Returns (name, unit) of each column. Names are unique, whatever the case of their letters."""
    found: list[tuple[str, str | None]] = []
    taken: set[str] = set()
    for at in range(width):
        text = header[at] if at < len(header) else ""
        text = re.sub(r"\s+", " ", _NOT_ALLOWED.sub(" ", text)).strip()
        name, unit = without_unit(text)
        below = units[at].strip() if at < len(units) else ""
        if below and is_unit(below):
            unit = below.strip("[]()").strip() or unit
            name = text if without_unit(text)[1] is None else name
        name = name.lstrip("_.").strip() or f"c{at + 1}"
        unique = _unique(name[:NAME_MAX], taken)
        taken.add(unique.lower())
        found.append((unique, unit[:40] if unit and unit not in ("-", "none", "unitless") else None))
    return found


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique.lower() in taken:
        number += 1
        unique = f"{name[: NAME_MAX - 6]}_{number}"
    return unique
