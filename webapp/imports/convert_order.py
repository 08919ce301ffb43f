"""Puts the times of the rows in order: computes when each row is due, and handles gaps and glitches as the
reading says."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from webapp.imports.clock import usual_of
from webapp.imports.reading import TimeReading

Micros = NDArray[np.int64]
JUMP_S = 86_400.0
"""A longer step in time is a jump, if the reading does not say how long a jump is."""
_SURE_ROWS = 5  # so many rows after a jump are no glitch
_STEPS_MAX = 1_000_000  # so many steps at most decide about the usual interval
_JUMP_OF_USUAL = 10  # the report names a step that is longer than so many usual ones


@dataclass
class Order:
    """Follows the rows through the file. `time` is the reading's time, and the rows' times are in UTC."""

    reading: TimeReading
    first: int | None = None  # the time of the first row, in microseconds
    last: int = 0  # the time of the last row, in microseconds
    _since: int = 0  # the time from the first row to the last one, without the jumps that were cut
    _due: int = 0
    _step: int = 0  # the last step that was no jump
    _sure: int = 0  # the number of accepted rows since the last jump
    _steps: list[Micros] = field(default_factory=list)
    _counted: int = 0
    _usual: int | None = None  # the usual interval of the first rows

    @property
    def jump_us(self) -> int:
        return int((self.reading.jump_s or JUMP_S) * 1e6)

    def filled(self, time: Micros, known: NDArray[np.bool_]) -> Micros:
        """Returns the times. A row without a time gets the time of the row before, so that it keeps its
        place."""
        if known.all():
            return time
        start = self.last if self.first is not None else (int(time[np.argmax(known)]) if known.any() else 0)
        place = np.maximum.accumulate(np.where(known, np.arange(len(time)), -1))
        return np.where(place < 0, start, time[place])

    def glitches(self, time: Micros, last_rows: bool) -> tuple[NDArray[np.bool_], int]:
        """Returns which rows are kept, and how many rows at the end the next call has to decide about."""
        stay, held = np.ones(len(time), dtype=bool), 0
        if self.reading.jump != "skip" or not len(time):
            return stay, held
        bounds = [0, *(np.flatnonzero(np.abs(np.diff(time)) > self.jump_us) + 1).tolist(), len(time)]
        near = self.last if self.first is not None else None
        begin_sure = 0
        for begin, end in pairwise(bounds):
            returned = near is None or abs(int(time[begin]) - near) <= self.jump_us
            real = end - begin >= _SURE_ROWS or (self._sure < _SURE_ROWS and end - begin > self._sure)
            if not returned and not real:
                if end == len(time) and not last_rows:
                    return stay, end - begin
                stay[begin:end] = False
                continue
            if not returned and self._sure < _SURE_ROWS and self.first is None:
                stay[begin_sure:begin] = False  # the rows before this one were the glitch
            if not returned:
                self._sure, begin_sure = 0, begin
            self._sure += end - begin
            near = int(time[end - 1])
        return stay, held

    def due(self, time: Micros) -> tuple[Micros, Micros]:
        """Returns each row's time without the jumps that are cut, and the time from the first row until the
        row is due."""
        if not len(time):
            return time, time
        previous = int(time[0]) if self.first is None else self.last
        steps = np.diff(time, prepend=previous)
        self._count(steps)
        since = self._since + np.cumsum(self._uncut(steps))
        due = np.maximum.accumulate(np.maximum(since, self._due))
        self.first = int(time[0]) if self.first is None else self.first
        self.last, self._since, self._due = int(time[-1]), int(since[-1]), int(due[-1])
        return self.first + since, due

    def _uncut(self, steps: Micros) -> Micros:
        jumps = np.flatnonzero(np.abs(steps) > self.jump_us)
        usual = np.flatnonzero((steps > 0) & (np.abs(steps) <= self.jump_us))
        if self.reading.jump == "cut" and len(jumps):
            steps = steps.copy()
            place = np.searchsorted(usual, jumps) - 1
            before = np.where(place >= 0, steps[usual[place]] if len(usual) else 0, self._step)
            steps[jumps] = np.where(steps[jumps] > 0, self.jump_us, before)
        self._step = int(steps[usual[-1]]) if len(usual) else self._step
        return steps

    def _count(self, steps: Micros) -> None:
        if self._counted < _STEPS_MAX:
            forward = steps[steps > 0][: _STEPS_MAX - self._counted]
            self._steps.append(forward)
            self._counted += len(forward)

    def usual_us(self) -> int | None:
        """Returns the usual time from a row to the next later one: the median of the file's first million
        steps."""
        steps = np.concatenate(self._steps) if self._steps else np.zeros(0, np.int64)
        return int(np.median(steps)) if len(steps) else None

    def largest(self, time: Micros) -> tuple[int, int] | None:
        """Returns (row, step) of the largest jump. The caller asks before `due` gets these rows."""
        steps = np.diff(time, prepend=self.last if self.first is not None else time[0]) if len(time) else time
        if not len(steps):
            return None
        if self._usual is None:
            self._usual = interval_us(time)
        row = int(np.argmax(np.abs(steps)))
        step = int(steps[row])
        return (row, step) if abs(step) > _JUMP_OF_USUAL * self._usual else None


def interval_us(time: Micros) -> int:
    """Returns the usual interval of a file's first rows. A time at the end of its interval is moved back by
    it."""
    steps = np.diff(time)
    forward = steps[steps > 0]
    if not len(forward):
        return 0
    return usual_of(int(forward.min()), int(np.median(forward)), len(forward))
