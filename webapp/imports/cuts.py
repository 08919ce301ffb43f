"""Cells that runs of spaces divide, by their places: a cell that is missing moves no other one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

ROWS_MIN = 3
LINES_MAX = 2_000
_TOKEN = re.compile(r"\S+")


def cuts_of(lines: Sequence[str]) -> tuple[int, ...]:
    """Returns the places, in characters from 0, at which the cells behind the first begin.

    Lines with the usual number of cells decide. Returns () if their cells do not align.
    """
    some = [line for line in lines[:LINES_MAX] if line.strip()]
    if any("\t" in line or '"' in line for line in some):
        return ()
    spans = [[found.span() for found in _TOKEN.finditer(line)] for line in some]
    widths = Counter(map(len, spans))
    width = max(widths, key=lambda each: (widths[each], each), default=0)
    full = [each for each in spans if len(each) == width]
    header = full and any(not any(map(str.isdigit, some[0][begin:end])) for begin, end in full[0])
    if header and len(full) > ROWS_MIN:
        full = full[1:]  # names need not stand above their columns
    if width < 2 or len(full) < ROWS_MIN:
        return ()
    begins = [min(row[at][0] for row in full) for at in range(width)]
    ends = [max(row[at][1] for row in full) for at in range(width)]
    if any(ends[at] >= begins[at + 1] for at in range(width - 1)):
        return ()
    return tuple((ends[at] + begins[at + 1]) // 2 for at in range(width - 1))


def cut_line(line: str, cuts: Sequence[int]) -> list[str]:
    """Returns the cells of a line. If some are missing, their places say which.

    If the places do not say it, there is one cell too many, which is the whole line.
    """
    tokens = line.split()
    width = len(cuts) + 1
    if len(tokens) >= width or not tokens:
        return tokens
    cells = [line[begin:end].strip() for begin, end in pairwise((0, *cuts, len(line)))]
    if [cell for cell in cells if cell] == tokens:
        return cells
    if not any(map(str.isdigit, tokens[0])):
        return tokens  # a remark
    return [*[""] * width, line.strip()]
