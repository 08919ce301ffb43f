"""Makes names of columns that Fogline accepts from the texts of a header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.imports.shapes import shape
from webapp.imports.time_names import is_hint
from webapp.imports.units import TYPES, is_unit, without_unit

NAME_MAX = 120
_NO_UNITS = frozenset(("-", "none", "unitless", "ts", "rn")) | TYPES
"""Texts in a line of units that are no units. Campbell's loggers write TS below times and RN below record
numbers."""

_NOT_ALLOWED = re.compile(r"[`\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Shift:
    """The names of all columns, for rows with one more cell than the header. `asks`: the file does not show
    which column has no name."""

    names: tuple[str, ...]
    note: str = ""
    asks: bool = False


def shift_of(names: Sequence[str], columns: Sequence[Sequence[str]]) -> Shift | None:
    """Returns the names of all columns, if the rows have exactly one cell more than the header has names.
    Otherwise returns None."""
    given = [name.strip() for name in names]
    while given and not given[-1]:
        given.pop()
    if not given or len(columns) != len(given) + 1 or not any(cell.strip() for cell in columns[-1]):
        return None
    kinds = [_kind_of(cells) for cells in columns]
    for at, name in enumerate(given):
        if not is_hint(name):
            continue
        following = given[at + 1] if at + 1 < len(given) else ""
        if kinds[at : at + 2] in (["date", "clock"], ["clock", "date"]) and not is_hint(following):
            note = f"{name} names two columns, a date and the time of day."
            return Shift((*given[: at + 1], name, *given[at + 1 :]), note)
        if kinds[at] in ("number", "words") and kinds[at + 1] in ("date", "time"):
            return Shift(("", *given), "The first column has no name.")
    if _counts_rows(columns[0]):
        return Shift(("", *given), "The first column has no name. It counts the rows.")
    return Shift(tuple(given), asks=True)


def _kind_of(cells: Sequence[str]) -> str:
    filled = [cell.strip() for cell in cells if shape(cell) != "none"]
    kinds = [shape(cell) for cell in filled]
    kind = max(set(kinds), key=kinds.count) if kinds else ""
    return "date" if kind == "time" and not any(":" in cell for cell in filled) else kind


def _counts_rows(cells: Sequence[str]) -> bool:
    numbers = [cell.strip() for cell in cells if cell.strip()]
    if len(numbers) < 3 or not all(number.isdecimal() for number in numbers) or int(numbers[0]) > 1:
        return False
    return [int(number) for number in numbers] == list(range(int(numbers[0]), int(numbers[0]) + len(numbers)))


def named(header: Sequence[str], units: Sequence[str], width: int) -> list[tuple[str, str | None]]:
    """Returns (name, unit) of each column. No two names differ only in the case of their letters."""
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
        found.append((unique, unit[:40] if unit and unit.lower() not in _NO_UNITS else None))
    return found


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique.lower() in taken:
        number += 1
        unique = f"{name[: NAME_MAX - 6]}_{number}"
    return unique
