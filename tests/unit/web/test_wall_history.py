"""Laws of a history: it keeps the least, the greatest and the last row of each step, and is bounded."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from webapp.walls.history import (
    BLOCKS_KEPT,
    CELLS,
    PARTS_MAX,
    Block,
    History,
    Place,
    Point,
    packed,
    points_between,
    step_for,
    unpacked,
)

HOUR_MS = 3_600_000


class Stored:
    """What a database would hold."""

    def __init__(self) -> None:
        self.blocks: dict[Place, bytes] = {}

    def load(self, place: Place) -> Block | None:
        return unpacked(self.blocks[place]) if place in self.blocks else None

    def flush(self, history: History) -> None:
        self.blocks |= {place: packed(block) for place, block in history.changed().items()}
        for place in history.dropped:
            self.blocks.pop(place, None)  # it may have come and gone since the last time
        history.flushed()

    def points(self, step_ms: int, from_ms: int = 0, to_ms: int = 2**62) -> tuple[int, set[Point]]:
        rows, points = 0, set()
        for place, data in self.blocks.items():
            if place.step_ms == step_ms:
                for count, inside in points_between(unpacked(data), from_ms, to_ms):
                    rows += count
                    points |= set(inside)
        return rows, points


def plain(points: list[Point], step_ms: int) -> set[Point]:
    """What is to be kept, without blocks: of equal values the first one, of equal times the last one."""
    steps: dict[int, list[Point]] = {}
    for point in points:
        steps.setdefault(point.at_ms // step_ms, []).append(point)
    found = set()
    for each in steps.values():
        newest = max(point.at_ms for point in each)
        found |= {min(each, key=lambda p: p.value), max(each, key=lambda p: p.value)}
        found.add([point for point in each if point.at_ms == newest][-1])
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("step_ms", BLOCKS_KEPT)
def test_whenever_it_is_stored_and_loaded_it_has_what_a_plain_look_at_all_rows_finds(
    seed: int, step_ms: int
) -> None:
    chance = random.Random(seed)
    stored = Stored()
    history = History(stored.load)
    points = [
        Point(chance.choice([-1.5, 0.0, 2.0, 7.25]), chance.randrange(50 * 60_000), 0, n) for n in range(3000)
    ]
    for point in points:
        history.add("", point)
        if chance.random() < 0.01:
            stored.flush(history)
        if chance.random() < 0.005:
            stored.flush(history)
            history = History(stored.load, stored.blocks)  # a restart
    stored.flush(history)
    rows, found = stored.points(step_ms)
    assert rows == len(points)
    assert found == plain(points, step_ms)


@pytest.mark.parametrize(("step_ms", "span_ms"), [(1_000, HOUR_MS), (10_000, 24 * HOUR_MS)])
def test_it_reaches_back_so_far_and_no_further(step_ms: int, span_ms: int) -> None:
    stored = Stored()
    history = History(stored.load)
    newest = 40 * 24 * HOUR_MS
    for at_ms in range(newest - 4 * span_ms, newest + 1, step_ms):
        history.add("", Point(1.0, at_ms, 0, at_ms))
        if at_ms % (step_ms * 100) == 0:
            stored.flush(history)
    stored.flush(history)
    _, found = stored.points(step_ms, newest - span_ms)
    assert len(found) == span_ms // step_ms + 1  # no gap
    assert sum(place.step_ms == step_ms for place in stored.blocks) == BLOCKS_KEPT[step_ms]
    history.add("", Point(9.0, newest - 4 * span_ms, 0, 0))  # older than all that is kept
    stored.flush(history)
    assert Point(9.0, newest - 4 * span_ms, 0, 0) not in stored.points(step_ms)[1]


def test_one_row_from_the_future_takes_the_place_of_one_block_alone() -> None:
    stored = Stored()
    history = History(stored.load)
    for at_ms in range(0, 4 * HOUR_MS, 1000):
        history.add("", Point(1.0, at_ms, 0, at_ms))
    history.add("", Point(1.0, 99 * 365 * 24 * HOUR_MS, 0, 0))
    history.add("", Point(2.0, 4 * HOUR_MS, 0, 1))
    stored.flush(history)
    back = 4 * HOUR_MS - 50 * 60_000
    assert len(stored.points(1000, back, 4 * HOUR_MS)[1]) == 50 * 60 + 1


def test_further_curves_are_passed_over() -> None:
    history = History(lambda _: None)
    for n in range(PARTS_MAX + 5):
        history.add(str(n), Point(1.0, 1000, 0, n))
    assert len({place.part for place in history.changed()}) == PARTS_MAX


def test_little_of_it_is_in_memory() -> None:
    stored = Stored()
    history = History(stored.load)
    for at_ms in range(0, 3 * HOUR_MS, 500):
        history.add("", Point(1.0, at_ms, 0, at_ms))
    stored.flush(history)
    assert len(history._blocks) == 2 * len(BLOCKS_KEPT) - 1  # 3 h are one block of 5 min steps


def test_a_month_of_one_curve_is_small() -> None:
    chance = random.Random(1)
    blocks = []
    for _ in range(5):
        history = History(lambda _: None)
        for at_ms in range(0, CELLS * 1000, 100):
            history.add("", Point(chance.gauss(50, 5), at_ms, 0, at_ms))
        blocks.append(max(len(packed(block)) for block in history.changed().values()))
    # 75 blocks, each of random values, which hardly pack
    assert max(blocks) * sum(BLOCKS_KEPT.values()) < 1_500_000


def test_the_steps_that_a_chart_is_given() -> None:
    backs = (1, HOUR_MS, HOUR_MS + 1, 24 * HOUR_MS, 25 * HOUR_MS, 26 * HOUR_MS, 31 * 24 * HOUR_MS, 2**60)
    steps = [step_for(back) for back in backs]
    assert steps == [1_000, 1_000, 10_000, 10_000, 10_000, 300_000, 300_000, 300_000]
    assert all(before <= after for before, after in pairwise(steps))
