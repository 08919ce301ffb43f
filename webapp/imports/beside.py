"""Finds text beside the numbers of a column: a unit in each cell, or signs in another form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from webapp.imports.cell_text import EXCEL_TEXT, OTHERWISE, without_beside
from webapp.imports.shapes import is_no_value, shape
from webapp.imports.units import unit_beside

NO_UNITS = ("", OTHERWISE, EXCEL_TEXT)
_NAME = re.compile(r"[A-Za-z_][\w.]{0,30}=")
"""A name before each value: `T=0.5`."""

NUMBERS_SHARE = 0.9
LOOKED_AT_MAX = 2_000
UNITS_LOOKED_AT = 200
_CODES = re.compile(
    r"(?:^|[^a-z])(?:id|ids|nr|no|serial|sn|code|plz|zip|tag|asset|uuid|key|batch|charge|lot|size|type|typ|seat|room)(?:$|[^a-z])"
)

_PLACES, _HEMISPHERES = (
    re.compile("latitude|longitude|lat$|lon$|long$|lng$|breite|länge"),
    ("N", "E", "S", "W"),
)
"""In a column of places, 19.5 W lies in the west: it is no power, and no number without its W."""


def beside(name: str, cells: Sequence[str]) -> str:
    """Returns the text beside the numbers of a column: a known unit, OTHERWISE, or EXCEL_TEXT (also beside
    texts). Returns "" if there is none.

    Except for EXCEL_TEXT, nine of ten cells must be numbers. A unit must stand beside more than half of them:
    one `10.00%` among plain numbers does not tell the unit of the others.
    """
    texts = [cell.strip() for cell in cells[:LOOKED_AT_MAX] if not is_no_value(cell)]
    if 2 * sum(without_beside(text, EXCEL_TEXT) != text for text in texts) > len(texts):
        return EXCEL_TEXT
    odd = [text for text in texts if shape(text) not in ("number", "time", "clock")]
    if not odd or _CODES.search(name.lower()):
        return ""
    for candidate in _candidates(odd):
        if candidate in _HEMISPHERES and _PLACES.search(name.lower()):
            continue
        numbers = [text for text in texts if shape(without_beside(text, candidate)) == "number"]
        with_it = sum(shape(text) != "number" for text in numbers)
        enough = with_it > 0 if candidate in NO_UNITS else 2 * with_it > len(numbers)
        if enough and len(numbers) >= NUMBERS_SHARE * len(texts):
            return candidate
    return ""


def name_before(cells: Sequence[str]) -> str:
    """Returns the name that stands before the value of each cell, or ""."""
    found = {match[0] if (match := _NAME.match(cell.strip())) else "" for cell in cells[:UNITS_LOOKED_AT]}
    return found.pop()[:-1] if len(found) == 1 else ""


def unit_of(text: str) -> str | None:
    """Returns the text beside a number if it is a unit, or None."""
    return None if text in NO_UNITS or text.endswith("=") else text


def _candidates(odd: Sequence[str]) -> list[str]:
    if name := name_before(odd):
        return [f"{name}="]
    units = Counter(unit for text in odd[:UNITS_LOOKED_AT] if (unit := unit_beside(text)))
    return [OTHERWISE, *(unit for unit, _ in units.most_common(1))]
