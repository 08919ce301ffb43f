"""Rows in which commas divide cells and also stand before decimals, without quotes.

A row of `time,temp,state` may be `08:00,21,5,ok`. A text says what each comma of a row means: `;` for one
that divides cells, and `.` for one before decimals. The text is `;.;` for this row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, pairwise

from webapp.imports.dialect import Line

COMMAS_MAX = 40
ROWS_MIN = 3
WAYS_MAX = 4
_ROWS_LOOKED_AT = 400
_WHOLE = re.compile(r"[+-]?\d*", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)


def ways_of(rows: Sequence[Line], names: int) -> list[str]:
    """Returns the ways in which rows have as many cells as there are names. Returns [] if the rows already
    have as many.

    In each way, the commas before decimals stand at the same places in all rows. There are at most WAYS_MAX
    ways.
    """
    some = [row.cells for row in rows if row.cells and '"' not in row.text][:_ROWS_LOOKED_AT]
    widths = Counter(map(len, some))
    width = max(widths, key=lambda each: (widths[each], each), default=0)
    even = [cells for cells in some if len(cells) == width]
    if not 1 < names < width <= COMMAS_MAX or len(even) < ROWS_MIN:
        return []
    pairs = [at for at in range(width - 1) if all(_is_pair(cells[at], cells[at + 1]) for cells in even)]
    ways = []
    for chosen in combinations(pairs, width - names):
        if all(after - before > 1 for before, after in pairwise(chosen)):
            ways.append("".join("." if at in chosen else ";" for at in range(width - 1)))
        if len(ways) == WAYS_MAX:
            break
    return ways


def _is_pair(whole: str, decimals: str) -> bool:
    return _WHOLE.fullmatch(whole.strip()) is not None and _DIGITS.fullmatch(decimals) is not None


def with_points(data: bytes, commas: str) -> bytes:
    """Returns the lines with points before decimals. A row with fewer or more commas is not changed."""
    return _row_of(commas).sub(lambda found: _with_points(found[0], commas), data)


def _with_points(row: bytes, commas: str) -> bytes:
    cells = row.split(b",")
    marks = [b"." if mark == "." else b"," for mark in commas]
    return b"".join(part for pair in zip(cells, [*marks, b""], strict=True) for part in pair)


@lru_cache
def _row_of(commas: str) -> re.Pattern[bytes]:
    parts = [rb"[ \t]*[+-]?\d*" if mark == "." else rb'[^,"\r\n]*' for mark in (*commas, ";")]
    for at, mark in enumerate(commas, 1):
        if mark == ".":
            parts[at] = rb"\d+[ \t]*"
    return re.compile(rb"(?m)^" + b",".join(parts) + rb"(?=\r?$)")
