"""The plain oracle of both operators that record around events, for the rows of one key."""

from __future__ import annotations

from dataclasses import dataclass, field

Found = tuple[int, int, int]
"""A row that comes out: its place, its recording, and the time from the recording's first event in ms."""


class Full(Exception):
    """More rows or recordings than may be kept."""


@dataclass
class PlainRecordings:
    before_ms: int
    after_ms: int
    most: int  # rows that may wait
    waiting: list[tuple[int, int]] = field(default_factory=list)  # time in ms, place
    recordings: list[list[int]] = field(default_factory=list)  # number, first event, from, until
    count: int = 0
    rows_ms: int | None = None
    events_ms: int | None = None
    told_ms: int | None = None

    def event(self, at_ms: int) -> list[Found]:
        from_ms, until_ms = at_ms - self.before_ms, at_ms + self.after_ms
        near = [each for each in self.recordings if from_ms <= each[3] and until_ms >= each[2]]
        if near:
            recording = near[0]
            recording[2:] = [min(from_ms, recording[2]), max(until_ms, recording[3])]
        else:
            self.count += 1
            recording = [self.count, at_ms, from_ms, until_ms]
            self.recordings.append(recording)
        taken = [row for row in self.waiting if recording[2] <= row[0] <= recording[3]]
        self.waiting = [row for row in self.waiting if row not in taken]
        return [(place, recording[0], row_ms - recording[1]) for row_ms, place in taken]

    def told(self, at_ms: int) -> None:
        self.told_ms = at_ms if self.events_ms is None else min(at_ms, self.events_ms)
        self.events_ms = at_ms
        self.waiting = [row for row in self.waiting if row[0] >= self.told_ms - self.before_ms]
        self._forget()

    def row(self, at_ms: int, place: int) -> list[Found]:
        """Raises Full, and may have changed anything then."""
        self.rows_ms = at_ms
        found = [each for each in self.recordings if each[2] <= at_ms <= each[3]]
        self._forget()
        if found:
            return [(place, found[0][0], at_ms - found[0][1])]
        if self.told_ms is None or at_ms >= self.told_ms - self.before_ms:
            if len(self.waiting) >= self.most:
                self.waiting = [row for row in self.waiting if row[0] <= at_ms + self.before_ms]
            if len(self.waiting) >= self.most:
                raise Full
            self.waiting = sorted([*self.waiting, (at_ms, place)], key=lambda row: row[0])
        return []

    def _forget(self) -> None:
        if self.rows_ms is not None and self.told_ms is not None:
            past_ms = min(self.rows_ms, self.told_ms) - self.before_ms
            self.recordings = [each for each in self.recordings if each[3] >= past_ms]
