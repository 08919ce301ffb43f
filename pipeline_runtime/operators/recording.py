"""Recorded tables: Parquet files of the import, which are read a row group at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from pipeline_runtime.model.schema import Field, FieldType

DATA = Path(__file__).parent / "data"
DEMOS = {
    "demo:debs2012": "debs2012.parquet",
    "demo:debs2012-additives": "debs2012-additives.parquet",
    "demo:wind-turbine": "wind-turbine.parquet",
    "demo:household-power": "household-power.parquet",
    "demo:ecg": "ecg.parquet",
}
"""The recordings that are shipped with Fogline. `python -m tests.demos` makes them."""

METADATA = "fogline"
"""The key of a table's facts in the metadata of its Parquet file."""

_GROUPS_KEPT = 3
_ROUND_WITHOUT_STEPS_US = 1_000_000
_ARROW_TYPES = {
    FieldType.INTEGER: pa.int64(),
    FieldType.NUMBER: pa.float64(),
    FieldType.STRING: pa.string(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: pa.timestamp("us", "UTC"),
}

Micros = NDArray[np.int64]


def arrow_type(type_: FieldType) -> pa.DataType:
    return _ARROW_TYPES[type_]


class Facts(BaseModel):
    """What is known of a table that was imported, without reading its rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Field, ...]
    time: bool  # whether each row has a recorded time
    rows: int
    usual_interval_s: float | None = None
    zone: str = "UTC"


def facts_of(path: Path) -> Facts:
    """Returns what the import noted in the Parquet file. ValueError: it is no file of the import."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        return Facts.model_validate_json(metadata[METADATA.encode()])
    except (pa.ArrowInvalid, KeyError) as error:
        raise ValueError("it is no table that Fogline imported") from error


@lru_cache
def demo_facts(reference: str) -> Facts:
    return facts_of(DATA / DEMOS[reference])


class Recording:
    """A table of n rows, of which a few row groups are in memory.

    Its columns are those of its facts, then `_time` (when the row was recorded) and `_due_us` (when it is due
    after the first row; it never falls) if it has times, then `_reject` and `_raw` (null in a good row).
    """

    def __init__(self, path: Path) -> None:
        self.facts = facts_of(path)
        self._file = pq.ParquetFile(path)
        self._reading = threading.Lock()
        counts = [self._file.metadata.row_group(n).num_rows for n in range(self._file.num_row_groups)]
        self._starts = np.cumsum([0, *counts])[:-1].astype(np.int64)
        self.rows = int(sum(counts))
        self.group = lru_cache(maxsize=_GROUPS_KEPT)(self._read_group)
        self.pace = lru_cache(maxsize=4)(self._read_pace)
        self.due_of = lru_cache(maxsize=_GROUPS_KEPT)(self._read_due)

    @property
    def timed(self) -> bool:
        return self.facts.time

    @cached_property
    def first_us(self) -> int:
        """When its first row was recorded, in microseconds since 1970."""
        return int(pc.cast(self.group(0, ("_time",))["_time"][:1], pa.int64())[0].as_py())

    def batches(self, names: tuple[str, ...], begin: int, count: int) -> Iterator[pa.RecordBatch]:
        """Yields these columns of `count` rows, as they come from one row group after the other."""
        while count > 0:
            number, place = self.place(begin)
            table = self.group(number, names)
            taken = min(count, table.num_rows - place)
            yield table.slice(place, taken).combine_chunks().to_batches()[0]
            begin, count = begin + taken, count - taken

    def _read_group(self, number: int, names: tuple[str, ...]) -> pa.Table:
        with self._reading:
            return self._file.read_row_group(number, columns=list(names))

    def place(self, row: int) -> tuple[int, int]:
        """Returns (row group, the row's place in it)."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return number, row - int(self._starts[number])

    def begin(self, number: int) -> int:
        """Returns the first row of a row group."""
        return int(self._starts[number])

    def _read_pace(self, longest_us: int) -> Pace:
        """Returns when rows are due if no pause is longer than this."""
        ends, rows, cut = [], [], []
        last = total = 0
        for number in range(len(self._starts)):
            due = self._read_due(number)
            steps = np.diff(due, prepend=last)
            long = np.flatnonzero(steps > longest_us)
            rows.append(long + self._starts[number])
            cut.append(total + np.cumsum(steps[long] - longest_us))
            total = int(cut[-1][-1]) if len(long) else total
            last = int(due[-1])
            ends.append(last - total)
        return Pace(self, np.array(ends, np.int64), np.concatenate(rows), np.concatenate(cut), last)

    def _read_due(self, number: int) -> Micros:
        column = self._read_group(number, ("_due_us",))["_due_us"]
        return np.asarray(column.to_numpy(), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Pace:
    """When the rows of a recording are due, in microseconds after the first."""

    recording: Recording
    ends: Micros  # of each row group's last row
    rows: Micros  # before which a pause is shortened
    cut: Micros  # by how much all of them up to each such row are
    span: int  # from the first row to the last, as recorded

    @property
    def period_us(self) -> int:
        """How long a round lasts. The next one begins a typical step after the last row, so that no two rows
        share a time by that."""
        return int(self.ends[-1]) + _step(int(self.ends[-1]), self.recording.rows)

    @property
    def recorded_us(self) -> int:
        """How long a round lasts by the recorded times."""
        return self.span + _step(self.span, self.recording.rows)

    def due_us(self, row: int) -> int:
        number, place = self.recording.place(row)
        return int(self._of_group(number)[place])

    def rows_until(self, at_us: int) -> int:
        """Returns how many rows are due by then."""
        number = int(np.searchsorted(self.ends, at_us, side="right"))
        if number == len(self.ends):
            return self.recording.rows
        due = self._of_group(number)
        return self.recording.begin(number) + int(np.searchsorted(due, at_us, side="right"))

    def _of_group(self, number: int) -> Micros:
        due = self.recording.due_of(number)
        if not len(self.rows):
            return due
        numbers = np.arange(len(due)) + self.recording.begin(number)
        place = np.searchsorted(self.rows, numbers, side="right")
        return np.asarray(due - np.concatenate([[0], self.cut])[place])


def _step(span: int, rows: int) -> int:
    """Returns the typical step. Where all rows have one time there is none, and rounds must not follow each
    other without a pause."""
    return max(span // max(rows - 1, 1), 1) if span else _ROUND_WITHOUT_STEPS_US


def open_recording(path: Path) -> Recording:
    """Returns the recording. It is kept for the next reader of the same file. ValueError: it is none."""
    stat = path.stat()
    return _opened(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _opened(path: str, _modified_ns: int, _size: int) -> Recording:
    return Recording(Path(path))
