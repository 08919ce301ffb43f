"""Sums and extremes of many windows that overlap, exact to the last bit.

The numbers stand in one array. A window is some of them that follow one another: it begins at its number in
`firsts` and has as many as `counts` says. What is made of a window is put together of parts whose lengths
are powers of two. Each part is made of two of half its length, so a window of 1,000 numbers takes some 20
steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Parts = tuple[Any, ...]
N = TypeVar("N", np.int64, np.float64)

_SUM_MAX = 1e300
_EPSILON = 2.0**-52


def sums(values: Floats, firsts: Whole, counts: Whole) -> Floats:
    """Returns what math.fsum gives for each window: the exact sum, rounded once. It is NaN if it is too large
    for a number."""
    most = int(counts.max(initial=0))
    if np.abs(values).max(initial=0) * max(most, 1) > _SUM_MAX:
        return _one_by_one(values, firsts, counts, np.ones(len(firsts), bool), np.empty(len(firsts)))
    zeros = np.zeros(len(values))
    found = put_together((values, zeros, zeros), (np.zeros(len(firsts)),) * 3, firsts, counts, _added)
    return _rounded(found, lambda unsure, made: _one_by_one(values, firsts, counts, unsure, made))


def squares(values: Floats, given: NDArray[np.bool_], means: Floats, firsts: Whole, counts: Whole) -> Floats:
    """Returns for each window the exact sum of the squares of how far its values are from the mean, of those
    that are given. Each square is rounded, and the sum once more."""
    if np.abs(values).max(initial=0) > _SUM_MAX**0.5 / 1e6:
        return np.array(
            [
                _total(
                    [(each - mean) * (each - mean) for each in values[first:end][given[first:end]].tolist()]
                )
                for first, end, mean in zip(firsts, firsts + counts, means.tolist(), strict=True)
            ]
        )
    found: tuple[Floats, ...] = (np.zeros(len(firsts)),) * 3
    for number in range(int(counts.max(initial=0))):
        at = np.minimum(firsts + number, len(values) - 1)
        apart = values[at] - means
        apart[~given[at] | (counts <= number)] = 0.0
        found = _added(found, (apart * apart, 0.0, 0.0))

    def again(unsure: NDArray[np.bool_], made: Floats) -> Floats:
        for place in np.flatnonzero(unsure).tolist():
            window = slice(firsts[place], firsts[place] + counts[place])
            apart = values[window][given[window]] - means[place]
            made[place] = math.fsum((apart * apart).tolist())
        return made

    return _rounded(found, again)


def extremes(function: np.ufunc, values: NDArray[N], firsts: Whole, counts: Whole) -> NDArray[N]:
    """Returns the least or the greatest number of each window: `function` is np.minimum or np.maximum. Each
    window has one number at least."""

    def chosen(one: Parts, other: Parts) -> Parts:
        return (function(one[0], other[0]),)

    [found] = put_together((values,), (values[firsts],), firsts, counts, chosen)
    return found  # type: ignore[no-any-return]


def put_together(
    parts: Parts, found: Parts, firsts: Whole, counts: Whole, combined: Callable[[Parts, Parts], Parts]
) -> Parts:
    """Returns what is made of each window's numbers and of what was found before. `parts` has the numbers."""
    at, length, most = firsts, 1, int(counts.max(initial=0))
    while True:
        # A window's shortest part is its first.
        has = (counts & length) > 0
        if has.all():
            found = combined(found, tuple(part[at] for part in parts))
        elif has.any():
            places = np.flatnonzero(has)
            some = combined(tuple(each[places] for each in found), tuple(part[at[places]] for part in parts))
            found = tuple(each.copy() for each in found)
            for each, new in zip(found, some, strict=True):
                each[places] = new
        at = at + np.where(has, length, 0)
        if 2 * length > most:
            return found
        parts = combined(tuple(part[:-length] for part in parts), tuple(part[length:] for part in parts))
        length *= 2


def _added(one: Parts, other: Parts) -> Parts:
    """Adds sums. Each is a number, what its rounding left out, and at most how much is missing then."""
    high, behind = _two_sum(one[0], other[0])
    low, lost = _two_sum(one[1], other[1])
    low, lost_too = _two_sum(behind, low)
    return *_two_sum(high, low), one[2] + other[2] + np.abs(lost) + np.abs(lost_too)


def _two_sum(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Returns the rounded sum, and what the rounding has left out (Knuth, The Art of Computer Programming,
    vol. 2, 4.2.2, theorem B)."""
    total = one + other
    of_other = total - one
    return total, (one - (total - of_other)) + (other - of_other)


def _rounded(found: Parts, again: Callable[[NDArray[np.bool_], Floats], Floats]) -> Floats:
    """Returns the sums, each rounded once. `again` computes those that what is missing could change."""
    high, low, lost = found
    missing = np.where(lost > 0, 2 * lost + np.abs(low) * _EPSILON, 0.0)
    made: Floats = high + (low - missing)
    unsure = made != high + (low + missing)
    return again(unsure, made) if unsure.any() else made


def _one_by_one(
    values: Floats, firsts: Whole, counts: Whole, which: NDArray[np.bool_], made: Floats
) -> Floats:
    for place in np.flatnonzero(which).tolist():
        made[place] = _total(values[firsts[place] : firsts[place] + counts[place]].tolist())
    return made


def _total(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.nan
