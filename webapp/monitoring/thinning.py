"""Picks as few rows of a stream as a chart needs to look as if it had all rows. Pure.

For each curve and pixel, it keeps three rows: the least, the greatest and the last one. So no peak is lost,
and every point of the chart is a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

POINTS_MAX = 4_000
"""The most rows that one answer has, or a few more."""
PIXELS_MIN = 60
_KEPT = 3  # rows of each curve per pixel


@dataclass(frozen=True)
class Row:
    at_ms: int
    key: str
    value: Any


@dataclass(frozen=True)
class Drawn:
    """What a chart draws of each row."""

    columns: tuple[str, ...]  # empty: all numbers of the first row
    by: str | None = None  # a curve for each value of this column
    marks: tuple[str, ...] = ()  # columns of true and false


def numbers_in(rows: Sequence[Row], drawn: Drawn) -> tuple[str, ...]:
    """Returns the columns that are drawn."""
    first = next((row.value for row in rows if isinstance(row.value, Mapping)), {})
    named = tuple(name for name in drawn.columns if name in first)
    return named or tuple(name for name, value in first.items() if _number(value) is not None)


def thinned(rows: Sequence[Row], drawn: Drawn, span_ms: int, pixels: int) -> list[int]:
    """Returns which of the rows a chart needs that is so wide and spans so much time, as rising indexes.

    `rows` are in the order of their times. A row without a number that is drawn is not needed.
    """
    columns = numbers_in(rows, drawn)
    curves = len({_key(row, drawn) for row in rows}) * max(1, len(columns))
    fitting = max(PIXELS_MIN, min(pixels, POINTS_MAX // (_KEPT * max(1, curves))))
    pixel_ms = max(1, span_ms // fitting)
    kept: set[int] = set()
    least: dict[tuple[Any, ...], tuple[float, int]] = {}
    greatest: dict[tuple[Any, ...], tuple[float, int]] = {}
    last: dict[tuple[Any, ...], int] = {}
    for index, row in enumerate(rows):
        for column, number in _numbers(row, columns):
            place = (_key(row, drawn), column, row.at_ms // pixel_ms)
            if place not in least or number < least[place][0]:
                least[place] = (number, index)
            if place not in greatest or number > greatest[place][0]:
                greatest[place] = (number, index)
            last[place] = index
    kept.update(index for _, index in least.values())
    kept.update(index for _, index in greatest.values())
    kept.update(last.values())
    kept.update(_turns(rows, drawn))
    return sorted(kept)


def _numbers(row: Row, columns: Sequence[str]) -> Iterator[tuple[str, float]]:
    if isinstance(row.value, Mapping):
        for column in columns:
            number = _number(row.value.get(column))
            if number is not None:
                yield column, number


def _turns(rows: Sequence[Row], drawn: Drawn) -> Iterator[int]:
    """Yields the rows at which a mark begins or ends."""
    before: dict[tuple[str, str], bool] = {}
    for index, row in enumerate(rows):
        for mark in drawn.marks:
            now = isinstance(row.value, Mapping) and row.value.get(mark) is True
            place = (_key(row, drawn), mark)
            if now != before.get(place, False):
                yield index
            before[place] = now


def _key(row: Row, drawn: Drawn) -> str:
    if drawn.by is None:
        return ""
    return str(row.value.get(drawn.by, row.key)) if isinstance(row.value, Mapping) else row.key


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == value else None  # NaN is no number
