"""Reads the rows for a preview: a source's first rows, a topic's newest rows, or a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pipeline_runtime.batch.gate_messages import Slice
from pipeline_runtime.batch.inputs import GroupInput, open_source
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import newest_offsets
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import Position

NEWEST_ROWS = 2_000
"""How many records of a topic a preview reads, as far as offsets tell."""
FAR_MS = 10 * 366 * 86_400_000
"""So far ahead of the clock that everything is due."""


class Outside(Protocol):
    """An input that is read from outside the pipeline, some rows at a time."""

    ended: bool  # there are no more rows
    now_ms: int  # the clock by which its rows come

    def reaches(self, rows_max: int) -> int | None:
        """Returns when its next `rows_max` rows will have come. Returns None if that limits nobody."""
        ...

    def next(self, rows_max: int, until_ms: int) -> list[Slice]:
        """Returns what comes until then, at most `rows_max` rows."""
        ...


class SourceRows:
    """The rows of a source operator, by a clock that is made up: nobody waits for them."""

    def __init__(
        self, spec: GroupSpec, item: GroupInput, files: Mapping[str, str], directory: Path, now_ms: int
    ) -> None:
        self._index = item.index
        self._reader = open_source(spec, item, files, directory)
        self._position: Position = self._reader.initial(now_ms)
        self.now_ms = now_ms
        self.ended = self._reader.ended(self._position)

    def reaches(self, rows_max: int) -> int | None:
        if self.ended:
            return None
        end = self._reader.advance(self._position, self.now_ms + FAR_MS, rows_max)
        due_ms = self._reader.due_ms(end, end)
        return None if due_ms is None else int(due_ms)

    def next(self, rows_max: int, until_ms: int) -> list[Slice]:
        start = self._position
        end = self._reader.advance(start, until_ms, rows_max)
        if end == start:
            return []
        self._position, self.ended = end, self._reader.ended(end)
        due_ms = self._reader.due_ms(end, end)
        if due_ms is not None:
            self.now_ms = min(until_ms, max(self.now_ms, int(due_ms)))
        return [Slice(self._index, self.now_ms, 0, start, end)]


class AtOnce:
    """Rows that are there already: all of them come first."""

    def __init__(self, slices: Sequence[Slice], now_ms: int) -> None:
        self._slices = [*slices]
        self.now_ms = now_ms
        self.ended = not slices

    def reaches(self, rows_max: int) -> int | None:
        return None

    def next(self, rows_max: int, until_ms: int) -> list[Slice]:
        found, self._slices, self.ended = self._slices, [], True
        return found


def newest_records(item: GroupInput, kafka: KafkaSettings, now_ms: int) -> AtOnce:
    """Returns the newest records of a topic. Raises KafkaError if the broker does not answer in time."""
    assert item.topic is not None
    ranges = newest_offsets(kafka, item.topic, NEWEST_ROWS)
    slices = [
        Slice(item.index, now_ms, partition, start, end)
        for partition, (start, end) in sorted(ranges.items())
        if start < end
    ]
    return AtOnce(slices, now_ms)


def given_records(item: GroupInput, records: list[list[Any]], now_ms: int) -> AtOnce:
    """Returns records that are there already. `records`: see kafka.ahead.pack."""
    return AtOnce([Slice(item.index, now_ms, 0, 0, len(records), records)] if records else [], now_ms)
