"""Places cards on the editor's canvas for elements that are added outside the editor. Pure. Lengths are in
the canvas's own unit, as in static/editor/places.ts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

GRID = 16
CARD_WIDTH, CARD_HEIGHT = 240, 92
CLEAR = GRID
"""The room between two cards."""
GAP = 3 * GRID
ROW_GAP = 4 * GRID
"""A group has a box around its elements, with its name above it."""


class Point(NamedTuple):
    x: float
    y: float

    def moved(self, by: Point) -> Point:
        return Point(self.x + by.x, self.y + by.y)


def snap(at: Point) -> Point:
    return Point(floor(at.x / GRID + 0.5) * GRID, floor(at.y / GRID + 0.5) * GRID)


def free_place(taken: Sequence[Point], preferred: Point) -> Point:
    """Returns `preferred`, or the nearest place below it where no card lies."""
    place = snap(preferred)
    while (hit := next((at for at in taken if _touch(at, place)), None)) is not None:
        place = Point(place.x, ceil((hit.y + CARD_HEIGHT + CLEAR) / GRID) * GRID)
    return place


def beside_offset(taken: Sequence[Point], cards: Sequence[Point]) -> Point:
    """Returns how far to move all cards, by the same offset, so that they cover no other card. The nearest
    such place is taken: below, beside or above."""
    if not cards:
        return Point(0, 0)
    xs, ys = [card.x for card in cards], [card.y for card in cards]
    step = snap(Point(max(xs) - min(xs) + CARD_WIDTH + GAP, max(ys) - min(ys) + CARD_HEIGHT + ROW_GAP))
    return next(
        by for by in _ways(step) if not any(_touch(at, card.moved(by)) for card in cards for at in taken)
    )


def _ways(step: Point) -> Iterator[Point]:
    yield Point(0, 0)
    ring = 0
    while True:
        ring += 1
        x, y = ring * step.x, ring * step.y
        yield from (Point(0, y), Point(x, 0), Point(0, -y), Point(-x, 0))


def _touch(a: Point, b: Point) -> bool:
    return abs(a.x - b.x) < CARD_WIDTH + CLEAR and abs(a.y - b.y) < CARD_HEIGHT + CLEAR
