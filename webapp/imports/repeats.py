"""Lines that come again: a logger that is started again writes what stands above its table once more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import AnyStr

ABOVE_MAX = 100
"""So many lines right above the names may come again with them."""


def repeats(lines: Sequence[AnyStr], names: AnyStr, around: Collection[AnyStr]) -> set[int]:
    """Returns the places of lines that are the names again, or that stand with them as they did before.

    `around` are the lines above and below the names. Lines have no ends.
    """
    found: set[int] = set()
    for at, line in enumerate(lines):
        if line != names:
            continue
        found.add(at)
        for step in (-1, 1):
            place = at + step
            while 0 <= place < len(lines) and (lines[place] in around or not lines[place].strip()):
                found.add(place)
                place += step
    return found
