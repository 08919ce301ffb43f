"""What type a column has, judged by all cells of it that are known; and what in it means "no value"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell
from webapp.imports.shapes import NO_VALUE, shape

NUMBERS_SHARE = 0.9  # of the cells with a value, for a column of numbers
DOUBT_SHARE = 0.5  # from which on somebody is asked
EXACT_MAX = 1 << 53  # above it, a number does not keep all its digits everywhere
_SENTINEL_WORDS = """
-9999 -999 -99999 -999999 -9999.0 -999.0 -999.9 -999.99 -9999.9 -9999.99 -9999.00 -99.99 -99.9 -32768 -32767
-2147483648 -7999 -6999 9999 99999 999999 9999.9 999.9 9999.99 999.99 32767 65535 2147483647 7999 6999
1e20 -1e20 1e31 -1e31
"""
SENTINELS = frozenset(_SENTINEL_WORDS.split())
"""Numbers that loggers write when they have none."""

FAR = 3.0  # how many times the range of the other values a sentinel lies outside of it
_TRUTHS = (
    ("true", "false"),
    ("yes", "no"),
    ("on", "off"),
    ("ja", "nein"),
    ("wahr", "falsch"),
    ("t", "f"),
    ("y", "n"),
)
_ID = re.compile(
    r"(?:^|[^a-z])(?:id|ids|nr|no|serial|sn|code|plz|zip|phone|tag|asset|uuid|key|batch|charge|lot|order|auftrag)(?:$|[^a-z])"
    r"|(?:id|nr|no|num|number|nummer|code|serial)$",
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True)
class Cell:
    line: int | None  # None in a piece from the middle, whose line is not known
    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Judged:
    """`missing` are texts that mean "no value"; `sentinel` is one of them that is a number. `unreadable` is
    the first cell that is no number in a column of numbers."""

    type: FieldType
    missing: tuple[str, ...] = ()
    sentinel: str | None = None
    why_text: str | None = None
    unreadable: Cell | None = None
    asks: bool = False
    numbers: int = 0
    others: int = 0


def judge(name: str, cells: Sequence[Cell], decimal: str, thousands: str, quoted_differs: bool) -> Judged:
    """Returns the type of a column. `quoted_differs`: its numbers are in quotes, and others are not."""
    filled = [cell for cell in cells if cell.text.strip()]
    words = [cell for cell in filled if cell.text.strip().lower() not in NO_VALUE]
    if not words:
        return Judged(FieldType.STRING)
    if (truth := _truth(words)) is not None:
        return truth
    numbers = [cell for cell in words if _number(cell.text, decimal, thousands) is not None]
    others = [cell for cell in words if _number(cell.text, decimal, thousands) is None]
    if not numbers:
        return Judged(FieldType.STRING)
    why_text = _why_text(name, [cell.text.strip() for cell in numbers], quoted_differs)
    if why_text is not None:
        return Judged(FieldType.STRING, why_text=why_text)
    share = len(numbers) / len(words)
    if share < DOUBT_SHARE:
        return Judged(FieldType.STRING)
    few = share < NUMBERS_SHARE and not _are_near(others)
    if few and _scattered(words, decimal, thousands):
        return Judged(FieldType.STRING)
    texts = [cell.text.strip() for cell in filled if cell.text.strip().lower() in NO_VALUE]
    missing = tuple(text for text, _ in Counter(texts).most_common(10))
    sentinel = _sentinel([cell.text.strip() for cell in numbers], decimal, thousands)
    whole = all(
        read_cell(cell.text, FieldType.INTEGER, decimal, thousands) is not None
        for cell in numbers
        if cell.text.strip() != sentinel
    )
    return Judged(
        FieldType.INTEGER if whole else FieldType.NUMBER,
        missing=missing + ((sentinel,) if sentinel is not None else ()),
        sentinel=sentinel,
        unreadable=others[0] if others else None,
        asks=few,
        numbers=len(numbers),
        others=len(others),
    )


def _number(text: str, decimal: str, thousands: str) -> float | None:
    value = read_cell(text, FieldType.NUMBER, decimal, thousands)
    return value if isinstance(value, int | float) else None


def _truth(words: Sequence[Cell]) -> Judged | None:
    """A column of truth values has both kinds of a pair, or one of `true` and `false`."""
    said = {cell.text.strip().lower() for cell in words}
    for pair in _TRUTHS:
        if said == set(pair) or (pair == ("true", "false") and said <= set(pair)):
            return Judged(FieldType.BOOLEAN)
    return None


def _why_text(name: str, numbers: Sequence[str], quoted_differs: bool) -> str | None:
    if any(_LEADING_ZERO.fullmatch(text) for text in numbers):
        return "numbers begin with a zero, which a number would lose"
    if any(
        len(text.lstrip("+-")) > 15 and text.lstrip("+-").isdecimal() and abs(int(text)) > EXACT_MAX
        for text in numbers
    ):
        return "numbers have more digits than a number keeps exactly"
    whole = all(text.isdecimal() for text in numbers)
    if whole and quoted_differs and _ID.search(name.lower()):
        return "its numbers are in quotes, and the others of the file are not"
    return None


def _scattered(words: Sequence[Cell], decimal: str, thousands: str) -> bool:
    """Whether numbers and other texts take turns, rather than one following the other."""
    kinds = [_number(cell.text, decimal, thousands) is not None for cell in words]
    changes = sum(before != after for before, after in pairwise(kinds))
    return changes > 2


def _are_near(others: Sequence[Cell]) -> bool:
    """Whether they are numbers with something beside them: `10.00%`, `<0.5`."""
    return all(shape(cell.text) == "near" for cell in others)


def _sentinel(numbers: Sequence[str], decimal: str, thousands: str) -> str | None:
    """Returns the number that means "no value": a usual one, far outside of all others."""
    for text in set(numbers) & SENTINELS:
        rest = [
            value
            for each in numbers
            if each != text and (value := _number(each, decimal, thousands)) is not None
        ]
        value = _number(text, decimal, thousands)
        if value is None or not rest:
            continue
        low, high = min(rest), max(rest)
        reach = max(high - low, abs(high), abs(low), 1.0) * FAR
        if value < low - reach or value > high + reach:
            return text
    return None
