"""Runs a source or a sink as a node would, without Kafka, for its tests.

    trial_source(Generator(GeneratorParams(rows=500)), seed=1).rows
    trial_sink(CsvSink(CsvSinkParams(file="a.csv")), rows, schema, seed=1)["a.csv"]

The events of a node happen here at random, the same for each `seed`. A source is read in pieces, and again
from where it once stood. A sink is killed in the middle, put back, and given the same rows again.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.sdk import (
    FileResolver,
    OperatorContext,
    Position,
    SinkOperator,
    SinkWriter,
    SourceOperator,
    SourceReader,
)
from pipeline_runtime.trial import START, TIMES_US, Outcome, Row, table_of

_ELEMENT = "element"
_PIECES = (1, 1, 2, 3, 5, 8, 20, 100)
_BATCHES = (0, 1, 1, 2, 3, 5, 8)
_STEPS_MS = (0, 1, 10, 100, 1000, 10_000)
_IDLE_STEPS_MAX = 200
_BACK_PIECES_MAX = 50  # except for the last restart, which is from the beginning


class RuleBroken(AssertionError):
    """A rule that nodes rely on does not hold, so rows would be lost, doubled or changed. The message says
    which, and where."""


def _remembered(value: Any, what: str) -> Any:
    """Returns the value as it comes back from the journal."""
    try:
        again = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise RuleBroken(f"{what} is no JSON ({error}): {value!r}") from error
    if again != value:
        raise RuleBroken(f"{what} is another one once it was JSON: {value!r} became {again!r}")
    return again


# -- sources -----------------------------------------------------------------------------------------


def trial_source(
    operator: SourceOperator, *, rows_max: int = 5_000, seed: int = 0, resolve_file: FileResolver = Path
) -> Outcome:
    """Returns all rows until the source has ended, has given `rows_max`, or has given none for 200 steps of a
    simulated clock. `resolve_file` finds the files of its parameters.

    Raises RuleBroken if a new operator that reads between two positions again gives other rows than the first
    time. Unless `follow` says that pieces count, the same goes for all rows between them in one piece.
    """
    resolved = type(operator)(operator.resolve({}), operator.describe_file)
    with tempfile.TemporaryDirectory() as work:
        run = _SourceRun(resolved, Path(work), resolve_file, random.Random(seed))
        run.go(rows_max)
    found = Outcome()
    for row in itertools.chain.from_iterable(piece.rows for piece in run.pieces):
        if row.get("_reject") is not None:
            found.rejected.append(row["_reject"])
        else:
            found.rows.append({name: row[name] for name in (*run.schema.names, "_time")})
    return found


@dataclass(frozen=True)
class _Piece:
    start: Position
    end: Position
    rows: list[dict[str, Any]]


class _SourceRun:
    def __init__(
        self, operator: SourceOperator, work: Path, resolve_file: FileResolver, chance: random.Random
    ) -> None:
        self.schema = operator.output_schema({})
        self.pieces: list[_Piece] = []
        self._operator = operator
        self._work = work
        self._resolve_file = resolve_file
        self._chance = chance
        self._now_ms = int(START.timestamp() * 1000)
        self._reader = self._opened()
        self._position: Position = _remembered(self._reader.initial(self._now_ms), "the initial position")

    def go(self, rows_max: int) -> None:
        rows = idle = 0
        while not self._reader.ended(self._position) and rows < rows_max and idle < _IDLE_STEPS_MAX:
            self._now_ms += self._chance.choice(_STEPS_MS)
            if self._chance.random() < 0.05:
                self._pause(self._chance.choice(_STEPS_MS))
            more = self._read_on(min(self._chance.choice(_PIECES), rows_max - rows))
            rows, idle = rows + more, 0 if more else idle + 1
            if self.pieces and self._chance.random() < 0.2:
                self._restart(max(0, len(self.pieces) - self._chance.randint(1, _BACK_PIECES_MAX)))
        self._restart(0)

    def _opened(self) -> SourceReader:
        """Opens the source as on another node, where only positions are left."""
        operator = type(self._operator)(self._operator.params, self._operator.describe_file)
        directory = Path(tempfile.mkdtemp(dir=self._work))
        return operator.open(OperatorContext(_ELEMENT, self.schema, {}, directory, self._resolve_file))

    def _pause(self, paused_ms: int) -> None:
        self._now_ms += paused_ms
        shifted = self._reader.pause_shift(self._position, paused_ms)
        self._position = _remembered(shifted, "the position after a pause")

    def _read_on(self, asked: int) -> int:
        """Returns how many rows the next piece has."""
        start = self._position
        end = _remembered(self._reader.advance(start, self._now_ms, asked), "a position")
        if end == start:
            return 0
        rows = self._rows(start, end)
        for count, what in ((len(rows), "gives"), (self._reader.rows_between(start, end), "tells of")):
            if count > asked:
                raise RuleBroken(
                    f"at most {asked} rows were asked for; from {start} to {end} it {what} {count}"
                )
        self.pieces.append(_Piece(start, end, rows))
        self._position = end
        return len(rows)

    def _restart(self, first: int) -> None:
        """Reads again from where the source stood before that piece. A standby that is far behind reads
        everything since then in one piece."""
        self._reader = self._opened()
        again = self.pieces[first:]
        for piece in again:
            _same(piece.start, piece.end, piece.rows, self._rows(piece.start, piece.end))
        if again and self._operator.follows({}) == "coalesced":
            start, end = again[0].start, again[-1].end
            _same(start, end, [row for piece in again for row in piece.rows], self._rows(start, end))

    def _rows(self, start: Position, end: Position) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for batch in self._reader.read(start, end):
            self._check(batch.schema)
            rows += batch.to_pylist()
        for one, other in itertools.pairwise(rows):
            if one["_offset"] >= other["_offset"]:
                raise RuleBroken(f"_offset does not rise: {one['_offset']}, then {other['_offset']}")
        return rows

    def _check(self, found: pa.Schema) -> None:
        types = {field.name: arrow_type(field.type) for field in self.schema.fields}
        for name, type_ in {**types, "_time": TIMES_US, "_offset": pa.int64()}.items():
            if name not in found.names:
                raise RuleBroken(f"the rows lack the column {name}")
            if found.field(name).type != type_:
                raise RuleBroken(f"the column {name} is {found.field(name).type}, but has to be {type_}")


def _same(start: Position, end: Position, then: Sequence[Row], now: Sequence[Row]) -> None:
    if then == now:
        return
    pairs = enumerate(zip(then, now, strict=False))
    index = next((n for n, (one, other) in pairs if one != other), min(len(then), len(now)))
    was, is_ = (rows[index] if index < len(rows) else "none" for rows in (then, now))
    raise RuleBroken(
        f"read again, the source gives other rows from {start} to {end}: {len(now)}, the first time"
        f" {len(then)}; row {index} was {was}, and is {is_}"
    )


# -- sinks -------------------------------------------------------------------------------------------


def trial_sink(
    operator: SinkOperator, rows: Iterable[Row], schema: StreamSchema, *, seed: int = 0
) -> dict[str, bytes]:
    """Returns the files in the sink's directory when all `rows` (data columns and `_time`) are committed:
    name -> content. The test compares them with the result of one run without faults. A sink that writes
    elsewhere is checked there.

    Meanwhile the sink is killed before and after commits, and put back by a new operator: where it stood, one
    batch before, or on another node with the files of an older checkpoint, cut to `lengths`. Batches that
    were committed since are written again as they were; the other rows are written in other batches. Raises
    RuleBroken if a batch that is written again has another mark.
    """
    resolved = type(operator)(operator.resolve({"in": schema}), operator.describe_file)
    with tempfile.TemporaryDirectory() as work:
        run = _SinkRun(resolved, schema, Path(work), random.Random(seed))
        run.go(list(rows))
        found = run.files()
        run.close()
        return found


@dataclass(frozen=True)
class _Committed:
    seq: int
    rows: pa.Table
    mark: Any


@dataclass(frozen=True)
class _Checkpoint:
    commits: int  # how many of them were committed
    directory: Path


class _SinkRun:
    def __init__(
        self, operator: SinkOperator, schema: StreamSchema, work: Path, chance: random.Random
    ) -> None:
        self._operator = operator
        self._schema = schema
        self._work = work
        self._chance = chance
        self._commits: list[_Committed] = []
        self._killed: list[SinkWriter] = []  # what these have not written yet must stay unwritten
        self._directory = Path(tempfile.mkdtemp(dir=work))
        self._writer = self._opened()
        self._writer.restore(None)
        self._checkpoint = self._copied()

    def go(self, left: list[Row]) -> None:
        while left:
            count = self._chance.choice(_BATCHES)
            batch = _Committed(len(self._commits) + 1, table_of(left[:count], self._schema), None)
            mark = self._write(batch)
            if self._chance.random() < 0.7:
                self._commits.append(_Committed(batch.seq, batch.rows, mark))
                left = left[count:]
                if self._chance.random() < 0.3:
                    self._checkpoint = self._copied()
                if self._chance.random() < 0.4:
                    self._restart()
            else:
                self._restart()  # before its commit

    def close(self) -> None:
        for writer in (*self._killed, self._writer):
            writer.close()

    def files(self) -> dict[str, bytes]:
        paths = sorted(path for path in self._directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self._directory)): path.read_bytes() for path in paths}

    def _opened(self) -> SinkWriter:
        operator = type(self._operator)(self._operator.params, self._operator.describe_file)
        schema = self._operator.output_schema({"in": self._schema})
        return operator.open(OperatorContext(_ELEMENT, schema, {"in": self._schema}, self._directory, Path))

    def _write(self, batch: _Committed) -> Any:
        return _remembered(self._writer.write(batch.rows, batch.seq), f"the mark of seq {batch.seq}")

    def _mark(self, commits: int) -> Any:
        return self._commits[commits - 1].mark if commits else None

    def _copied(self) -> _Checkpoint:
        """Returns the files as they are, without the bytes after the mark."""
        copy = Path(tempfile.mkdtemp(dir=self._work))
        shutil.copytree(self._directory, copy, dirs_exist_ok=True)
        _cut(copy, self._writer.lengths(self._mark(len(self._commits))))
        return _Checkpoint(len(self._commits), copy)

    def _restart(self) -> None:
        """Kills or stops the sink, puts it back, and writes again what was committed since."""
        if self._chance.random() < 0.5:
            self._writer.close()
        else:
            self._killed.append(self._writer)
        kept = max(0, len(self._commits) - self._chance.choice((0, 1)))
        if self._chance.random() < 0.5:
            kept = self._checkpoint.commits
            self._directory = Path(tempfile.mkdtemp(dir=self._work))
            shutil.copytree(self._checkpoint.directory, self._directory, dirs_exist_ok=True)
        self._writer = self._opened()
        self._writer.restore(self._mark(kept))
        for batch in self._commits[kept:]:
            mark = self._write(batch)
            if mark != batch.mark:
                raise RuleBroken(
                    f"written again, seq {batch.seq} has another mark: {mark}; the first time {batch.mark}"
                )


def _cut(directory: Path, lengths: Mapping[str, int]) -> None:
    for name, length in lengths.items():
        there = (directory / name).stat().st_size if (directory / name).exists() else 0
        if there < length:
            raise RuleBroken(f"lengths tells of {length} bytes of {name}, which has {there}")
        if there > length:
            os.truncate(directory / name, length)
