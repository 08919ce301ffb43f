"""What stands beside the numbers of a column: a unit in each cell, or a minus written in another way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from webapp.imports.cell_text import (
    EXCEL_TEXT,
    MINUS_APART,
    MINUS_BEHIND,
    MINUS_SIGN,
    PARENTHESES,
    without_beside,
)
from webapp.imports.shapes import is_no_value, shape
from webapp.imports.units import is_unit

NO_UNITS = ("", MINUS_BEHIND, PARENTHESES, MINUS_SIGN, MINUS_APART, EXCEL_TEXT)
NUMBERS_SHARE = 0.9
LOOKED_AT_MAX = 2_000
_CURRENCIES = ("€", "$", "£", "¥", "CHF", "EUR", "USD", "GBP")
_BEHIND = re.compile(
    r"[+-]?[0-9.,][0-9.,'\u2019 \u00a0\u2007\u202f\u2009]*(?:[eE][+-]?[0-9]{1,3}(?![0-9]))?\s*"
    r"(?P<unit>[^0-9\s.,].{0,19})",
    re.DOTALL,
)
_CODES = re.compile(
    r"(?:^|[^a-z])(?:id|ids|nr|no|serial|sn|code|plz|zip|tag|asset|uuid|key|batch|charge|lot|size|type|typ|seat|room)(?:$|[^a-z])"
)


def beside(name: str, cells: Sequence[str]) -> str:
    """Returns what stands beside numbers: a known unit, `-`, `()`, the sign U+2212 or, beside texts as well,
    `=""`; "" if nothing does.

    Without it, nine of ten cells must be numbers. A unit must stand beside more than half of them: one
    `10.00%` among plain numbers does not say what they are.
    """
    texts = [cell.strip() for cell in cells[:LOOKED_AT_MAX] if not is_no_value(cell)]
    if 2 * sum(without_beside(text, EXCEL_TEXT) != text for text in texts) > len(texts):
        return EXCEL_TEXT
    odd = [text for text in texts if shape(text) not in ("number", "time", "clock")]
    if not odd or _CODES.search(name.lower()):
        return ""
    for candidate in _candidates(odd):
        numbers = [text for text in texts if shape(without_beside(text, candidate)) == "number"]
        with_it = sum(shape(text) != "number" for text in numbers)
        is_usual = candidate in NO_UNITS or 2 * with_it > len(numbers)
        if is_usual and len(numbers) >= NUMBERS_SHARE * len(texts):
            return candidate
    return ""


def _candidates(odd: Sequence[str]) -> list[str]:
    found = [
        mark
        for mark, pattern in (
            (PARENTHESES, r"\([0-9.,].*\)"),
            (MINUS_BEHIND, r"[0-9.,].*-"),
            (MINUS_APART, r"-[ \u00a0\u2007\u202f\u2009]+[0-9.,].*"),
            (MINUS_SIGN, rf"{MINUS_SIGN}\s*[0-9.,].*"),
        )
        if any(re.fullmatch(pattern, text) for text in odd)
    ]
    units = Counter(unit for text in odd[:200] if (unit := _unit(text)))
    return [*found, *(unit for unit, _ in units.most_common(1))]


def _unit(text: str) -> str:
    for currency in _CURRENCIES:
        if text.lstrip("-").startswith(currency) or text.endswith(currency):
            return currency
    behind = _BEHIND.fullmatch(text)
    unit = behind["unit"].strip() if behind is not None else ""
    return unit if unit and is_unit(unit) and not unit.startswith(("-", "(", "[")) else ""
