"""Finds lines that come again. If a logger is started again, it writes the lines above its table once
more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import AnyStr

ABOVE_MAX = 100
"""At most so many lines right above the names may come again together with the names."""


def repeats(lines: Sequence[AnyStr], names: AnyStr, around: Collection[AnyStr]) -> set[int]:
    """Returns the places of lines that repeat the names, and of lines that stand beside them as they did the
    first time.

    `around` are the lines above and below the names. Lines have no line ends.
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
