"""Finds year, month, day, hour and other parts of a time in the first columns of a table without names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from webapp.imports.time_text import time_reader

ROWS_READ = 200
ROWS_MIN = 3
_PARTS = ("%Y", "%m", "%d", "%H", "%M", "%S")
_YEAR, _DIGITS, _PADDED = re.compile(r"(?:19|20)\d\d"), re.compile(r"\d{1,2}"), re.compile(r"\d\d")
_NO_NAME = re.compile(r"c\d+")


def parts_without_names(names: Sequence[str], columns: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns the formats of the first columns if each row is later than the row before: %Y, %m, %d, or ().

    Other small numbers do not rise in this way. If the rows rise, a further column belongs to the time only
    under three conditions: all its cells have two digits, some begin with 0, and all rows still rise. 20, for
    example, may be a temperature. Minutes and seconds may be the same in all rows: 30, if the rows are an
    hour apart.
    """
    if not all(_NO_NAME.fullmatch(name) for name in names):
        return ()
    found: tuple[str, ...] = ()
    rows: list[list[str]] = []
    for part, column in zip(_PARTS, columns, strict=False):
        cells = [cell.strip() for cell in column[:ROWS_READ]]
        shape = _YEAR if part == "%Y" else _PADDED if found else _DIGITS
        if not all(map(shape.fullmatch, cells)) or len(cells) < ROWS_MIN:
            break
        same = part in ("%M", "%S") and len(set(cells)) == 1
        if found and not same and not any(cell.startswith("0") for cell in cells):
            break
        rows = [[*row, cell] for row, cell in zip(rows or [[] for _ in cells], cells, strict=False)]
        if part in ("%Y", "%m"):
            continue
        chosen = _PARTS[: len(rows[0])]
        read = time_reader(" ".join(chosen))
        times = [moment and moment[0] for moment in map(read, map(" ".join, rows))]
        if None in times:
            break
        if all(before < after for before, after in pairwise(filter(None, times))):
            found = chosen
    return found
