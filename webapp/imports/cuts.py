"""Divides lines into cells by the places of the cells, so that a missing cell moves no other cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from webapp.imports.reading import LINE_MAX

ROWS_MIN = 3
LINES_MAX = 2_000
_TOKEN = re.compile(r"\S+")


def cuts_of(lines: Sequence[str]) -> tuple[int, ...]:
    """Returns the places, in characters from 0, at which all cells but the first begin.

    The lines with the usual number of cells decide. Returns () if their cells are not aligned.
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
        full = full[1:]  # the names need not be aligned with their columns
    if width < 2 or len(full) < ROWS_MIN:
        return ()
    begins = [min(row[at][0] for row in full) for at in range(width)]
    ends = [max(row[at][1] for row in full) for at in range(width)]
    if any(ends[at] >= begins[at + 1] for at in range(width - 1)):
        return ()
    return tuple((ends[at] + begins[at + 1]) // 2 for at in range(width - 1))


def cuts_below_names(lines: Sequence[str]) -> tuple[int, ...]:
    """Returns the places at which cells begin below their names. Such cells may contain spaces.

    Between two names each line must have a space. Returns () if there are not as many cells as names.
    """
    some = [line for line in lines[:LINES_MAX] if line.strip()]
    if len(some) <= ROWS_MIN or any("\t" in line for line in some) or any(map(str.isdigit, some[0])):
        return ()
    width = min(max(map(len, some)), LINE_MAX)
    filled = [any(line[at : at + 1].strip() for line in some) for at in range(width)]
    begins = [at for at in range(width) if filled[at] and not (at and filled[at - 1])]
    ends = [at for at in range(1, width + 1) if filled[at - 1] and not (at < width and filled[at])]
    if len(begins) != len(some[0].split()) or len(begins) < 2:
        return ()
    return tuple((end + begin + 1) // 2 for end, begin in zip(ends, begins[1:], strict=False))


def at_places(line: str, cuts: Sequence[int]) -> list[str]:
    """Returns the cells between the places, without the spaces around them."""
    return [line[begin:end].strip() for begin, end in pairwise((0, *cuts, None))]


def cut_line(line: str, cuts: Sequence[int]) -> list[str]:
    """Returns the cells of a line that is divided by spaces. If cells are missing, the places show which
    ones.

    Cells may contain spaces, too. If the places do not show to which cell each word belongs, the whole line
    is one additional cell.
    """
    tokens = line.split()
    width = len(cuts) + 1
    cells = at_places(line, cuts)
    within = [cell.split() for cell in cells]
    is_cut = [token for cell in within for token in cell] != tokens
    if len(tokens) == width and (is_cut or any(len(cell) > 1 and _are_numbers(cell) for cell in within)):
        return tokens
    if not tokens or (len(tokens) < width and not any(map(str.isdigit, tokens[0]))):
        return tokens  # an empty line, or a remark
    if not is_cut:
        return cells
    return tokens if len(tokens) > width else [*[""] * width, line.strip()]


def _are_numbers(tokens: Sequence[str]) -> bool:
    return all(any(map(str.isdigit, token)) for token in tokens)
