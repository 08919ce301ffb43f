"""The history of one series, bounded: of each second, of 10 s and of 5 min the least, the greatest and the
last row. Pure.

    row --> 1 s (an hour) , 10 s (a day) , 5 min (31 days) --> blocks of 300 steps, each a row of the database

Every point is a row of the stream, so a chart that is drawn from a history loses no peak.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

CELLS = 300
"""steps of a block"""
BLOCKS_KEPT = {1_000: 13, 10_000: 31, 300_000: 31}
"""by the length of a step in ms: a bit more than an hour, a day and a month"""
PARTS_MAX = 14
"""as many curves as a chart draws"""
PART_CHARACTERS_MAX = 200
_CELL = struct.Struct("<HI" + "dqHq" * 3)
_PACKED_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the stream, as far as a chart draws it."""

    value: float
    at_ms: int
    partition: int
    offset: int


@dataclass(slots=True)
class Cell:
    """What is kept of one step."""

    count: int
    least: Point
    greatest: Point
    last: Point

    def add(self, point: Point) -> None:
        self.count += 1
        if point.value < self.least.value:
            self.least = point
        if point.value > self.greatest.value:
            self.greatest = point
        if point.at_ms >= self.last.at_ms:
            self.last = point


@dataclass(frozen=True, order=True)
class Place:
    """Where a block lies: in the curve of one value (`part`), from `start_ms` on, with such steps."""

    part: str
    step_ms: int
    start_ms: int


@dataclass
class Block:
    cells: dict[int, Cell] = field(default_factory=dict)
    changed: bool = False


def packed(block: Block) -> bytes:
    """Returns the block as it is stored."""
    cells = b"".join(_CELL.pack(index, *_flat(cell)) for index, cell in sorted(block.cells.items()))
    return zlib.compress(cells, _PACKED_LEVEL)


def unpacked(data: bytes) -> Block:
    """Returns a block that was stored."""
    found = Block()
    for index, count, *rest in _CELL.iter_unpack(zlib.decompress(data)):
        found.cells[index] = Cell(count, Point(*rest[:4]), Point(*rest[4:8]), Point(*rest[8:]))
    return found


def _flat(cell: Cell) -> Iterator[float | int]:
    yield min(cell.count, 2**32 - 1)
    for point in (cell.least, cell.greatest, cell.last):
        yield from (point.value, point.at_ms, point.partition, point.offset)


class History:
    """The newest blocks of one series. `load` gives the older ones, which rows that come late still change.

    `starts` has the blocks that are stored.
    """

    def __init__(self, load: Callable[[Place], Block | None], starts: Iterable[Place] = ()) -> None:
        self._load = load
        self._blocks: dict[Place, Block] = {}
        self._starts: dict[tuple[str, int], set[int]] = {}
        self._parts: set[str] = set()
        for place in starts:
            self._parts.add(place.part)
            self._starts.setdefault((place.part, place.step_ms), set()).add(place.start_ms)
        self.dropped: list[Place] = []
        """blocks that are too old since the last `flushed`"""

    def add(self, part: str, point: Point) -> None:
        """Adds a row. Ignores a row that is older than everything that is kept, and a further curve beyond
        the limit."""
        if part not in self._parts:
            if len(self._parts) >= PARTS_MAX:
                return
            self._parts.add(part)
        for step_ms in BLOCKS_KEPT:
            length_ms = step_ms * CELLS
            place = Place(part, step_ms, point.at_ms // length_ms * length_ms)
            block = self._block(place)
            if block is None:
                continue
            index = (point.at_ms - place.start_ms) // step_ms
            cell = block.cells.get(index)
            if cell is None:
                block.cells[index] = Cell(1, point, point, point)
            else:
                cell.add(point)
            block.changed = True

    def _block(self, place: Place) -> Block | None:
        found = self._blocks.get(place)
        if found is not None:
            return found
        starts = self._starts.setdefault((place.part, place.step_ms), set())
        if place.start_ms in starts:
            found = self._load(place) or Block()
        else:
            if len(starts) >= BLOCKS_KEPT[place.step_ms]:
                oldest = min(starts)
                if place.start_ms < oldest:
                    return None
                starts.discard(oldest)
                old = Place(place.part, place.step_ms, oldest)
                self._blocks.pop(old, None)
                self.dropped.append(old)
            starts.add(place.start_ms)
            found = Block()
        self._blocks[place] = found
        return found

    def changed(self) -> dict[Place, Block]:
        """Returns the blocks that are to be stored."""
        return {place: block for place, block in self._blocks.items() if block.changed}

    def flushed(self) -> None:
        """Says that all of it is stored. Only the newest two blocks of each length stay in memory."""
        self.dropped = []
        for block in self._blocks.values():
            block.changed = False
        newest = {key: sorted(starts)[-2:] for key, starts in self._starts.items()}
        self._blocks = {
            place: block
            for place, block in self._blocks.items()
            if place.start_ms in newest[place.part, place.step_ms]
        }


def step_for(back_ms: int) -> int:
    """Returns the length of the shortest steps that reach so far back from the newest row."""
    for step_ms, kept in BLOCKS_KEPT.items():
        # The newest block may have just begun.
        if back_ms <= (kept - 1) * CELLS * step_ms:
            return step_ms
    return max(BLOCKS_KEPT)


def points_between(block: Block, from_ms: int, to_ms: int) -> Iterator[tuple[int, list[Point]]]:
    """Yields of each step (rows, its least, greatest and last row), as far as these lie between the times."""
    for cell in block.cells.values():
        points = {(point.partition, point.offset): point for point in (cell.least, cell.greatest, cell.last)}
        inside = [point for point in points.values() if from_ms <= point.at_ms <= to_ms]
        if inside:
            yield cell.count, inside
