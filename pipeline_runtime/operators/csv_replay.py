"""Source: a recorded file, row by row, as if it happened now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, JsonValue
from pydantic.json_schema import SkipJsonSchema

from pipeline_runtime.model.faults import did_you_mean, listed, words_for_pattern
from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.operators import source_clock
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.recording import (
    DATA,
    DEMOS,
    Facts,
    Pace,
    Recording,
    demo_facts,
    open_recording,
)
from pipeline_runtime.operators.sdk import (
    OperatorContext,
    Params,
    Position,
    SchemaMismatch,
    SourceOperator,
    SourceReader,
)

RATE_MAX = 1e6
"""Rows per second; a batch takes fewer, so this is as fast as the node can."""
_RATE_WITHOUT_TIMES = 10.0
LOOPS_MAX = 1_000_000
"""More rounds than anybody waits for. A replay without end has 0."""

# How the editor's form asks for them: see docs/how-to/add-an-operator.md, "The form".
_FILE: dict[str, JsonValue] = {
    "format": "file",
    "x-files": [
        {"reference": "demo:debs2012", "name": "Sample: power of a machine (DEBS 2012)"},
        {
            "reference": "demo:debs2012-additives",
            "name": "Sample: sensors and valves of additives (synthetic)",
        },
        {"reference": "demo:wind-turbine", "name": "Sample: four wind turbines, three weeks"},
        {"reference": "demo:household-power", "name": "Sample: power consumption of a house, twelve days"},
        {"reference": "demo:ecg", "name": "Sample: ECG, 360 values per second"},
    ],
    "x-table": {"without_time": {"rate": _RATE_WITHOUT_TIMES}},
}
_PACES: list[JsonValue] = [
    {
        "title": "As recorded",
        "value": None,
        "needs": "time",
        "with": ["speed"],
        "help": "Each row is sent at its recorded time, counted from the first row.",
    },
    {
        "title": "rows per second",
        "given": _RATE_WITHOUT_TIMES,
        "help": "Rows are sent evenly, whatever times were recorded.",
    },
    {"title": "As fast as possible", "value": RATE_MAX, "help": "For a quick trial or a load test."},
]
_ENDS: list[JsonValue] = [
    {"title": "Stop", "value": 1, "help": "The element ends after the last row."},
    {"title": "Repeat for ever", "value": 0, "help": "Event time continues from one round to the next."},
    {
        "title": "rounds in total, then stop",
        "given": 2,
        "help": "Event time continues from one round to the next.",
    },
]
_TIMES: list[JsonValue] = [
    {
        "title": "Times of today: the first row is now",
        "value": True,
        "help": "Charts, alarms and outputs say when a row was replayed, not when it was recorded. The"
        " distances between rows stay.",
    },
    {
        "title": "The times in the file",
        "value": False,
        "needs": "time",
        "help": "Charts, alarms and outputs say when a row was recorded, and a chart ends at the newest"
        " row instead of now. An element that also reads a source of today may take the rows as late.",
    },
]


class CsvReplayParams(Params):
    path: str = Field(
        title="File",
        pattern=words_for_pattern(r"^(demo|upload):[A-Za-z0-9._-]+$", "choose a file or upload one"),
        description="demo:<name>, or upload:<id> for a file that you uploaded",
        json_schema_extra=_FILE,
    )
    rate: float | None = Field(
        default=None,
        gt=0,
        le=RATE_MAX,
        title="Playback pace",
        description="rows per second; empty: at the recorded times",
        json_schema_extra={"x-choices": _PACES},
    )
    speed: float = Field(
        default=1.0,
        ge=1e-3,
        le=1e6,
        title="Times as fast as recorded",
        description="2 is twice as fast as recorded, 0.5 half as fast; it has no effect beside a rate",
    )
    loops: int = Field(
        default=1,
        ge=0,
        le=LOOPS_MAX,
        title="When it ends",
        description="how many times the file is played; 0: for ever",
        json_schema_extra={"x-choices": _ENDS},
    )
    keep: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=COLUMNS_MAX,
        title="Columns to keep",
        description="keep only these columns; empty: all",
        json_schema_extra={"x-item": "column"},
    )
    key: str | None = Field(
        default=None,
        max_length=120,
        title="Column of the key",
        description="the column that is the record's key; empty: none",
    )
    restamp: bool = Field(
        default=True,
        title="Which times do the rows get?",
        description="shift the recorded times so that the first row is at the start of the replay",
        json_schema_extra={"x-choices": _TIMES, "x-first": True},
    )
    catch_up: source_clock.CatchUp = True
    longest_pause_s: float = Field(
        default=3600,
        gt=0,
        le=1e9,
        title="Longest pause, in seconds",
        description="nobody waits longer for a row, however large the gap in the recording is",
    )
    table: SkipJsonSchema[Facts | None] = Field(
        default=None, description="what is known of the file; noted when the pipeline is deployed"
    )


class CsvReplay(SourceOperator):
    """Replays a recorded file: a sample (`demo:debs2012`) or one that you uploaded (`upload:<id>`).

    When you upload a file, Fogline imports it once. The import finds the columns, their types and the time of
    each row, and you can change how it reads the file. A replay reads the imported table.

    The element sends `rate` rows per second. At a million, the maximum, it sends rows as fast as the node
    can. Without a rate, it sends rows at their recorded times, and `speed` makes that faster or slower. It
    plays the file once, and then ends. `loops` plays the file several times, and `loops: 0` for ever. The
    times of a round follow those of the round before. If all rows have the same time, a round begins every
    second.

    Event time is the recorded time, shifted so that the recording begins at the start of the replay. With
    `restamp: false` it is the recorded time itself. In a file without times, event time follows from the
    rate. If the rate differs from the recorded one, event time runs faster or slower than the clock, because
    the recorded intervals stay the same. If a gap in the recording would take longer than `longest_pause_s`
    to play, the next row comes after that pause. Its event time keeps its recorded distance, so event time
    also differs from the clock then.

    A cell that the import could not read is null. A row whose time it could not read goes to the dead letters
    with the reason, and so does a row without a value in `key`.

    A row's time and content depend only on its index and on the stops before it. So the element can be
    stopped, moved and restored at any row. A pause stops the recording's clock. After another stop, such as
    that of its node, the element at once sends the rows that were due in the meantime. With `catch_up: false`
    it does so only if they are at most 2 s late, and otherwise goes on as after a pause. It leaves out no
    row.
    """

    type = "csv-replay"
    title = "CSV replay"
    summary = "Replays a recorded file at a fixed rate or at its recorded pace"
    category = "sources"
    icon = "file-play"
    Params = CsvReplayParams
    state_params = frozenset({"path", "table", "restamp"})
    example = {"path": "demo:debs2012", "rate": 100, "loops": 0}

    params: CsvReplayParams

    def files(self) -> tuple[str, ...]:
        return (self.params.path,)

    @cached_property
    def facts(self) -> Facts:
        """What is known of the file; raises SchemaMismatch when nothing is."""
        path = self.params.path
        if path in DEMOS:
            return demo_facts(path)
        if path.startswith("demo:"):
            hint = did_you_mean(path, DEMOS)
            raise SchemaMismatch("params.path", f"there is no {path}{hint} ({listed(DEMOS)})")
        if self.describe_file is None:
            if self.params.table is None:
                raise SchemaMismatch("params.path", "the columns of the file are not known here")
            return self.params.table
        try:
            return Facts.model_validate_json(self.describe_file(path))
        except FileNotFoundError as error:
            raise SchemaMismatch("params.path", str(error)) from error
        except ValueError as error:
            raise SchemaMismatch("params.path", "this file is no table; choose another one") from error

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        facts, params = self.facts, self.params
        whole = StreamSchema(fields=facts.columns)
        with SchemaCheck() as check:
            if facts.rows == 0:
                check.fail("params.path", "nothing of this file could be read; look at how it is imported")
            if params.rate is None and not facts.time:
                check.fail("params.rate", "the file has no times: enter rows per second")
            for index, name in enumerate(params.keep or ()):
                check.column(whole, name, f"params.keep[{index}]")
            names = params.keep or whole.names
            kept = StreamSchema(fields=tuple(field for field in whole.fields if field.name in names))
            if params.key is not None:
                check.column(kept, params.key, "params.key")
        return StreamSchema(fields=kept.fields, key=params.key)

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> CsvReplayParams:
        return self.params.model_copy(update={"table": self.facts})

    def open(self, ctx: OperatorContext) -> SourceReader:
        if self.params.path in DEMOS:
            path = DATA / DEMOS[self.params.path]
        else:
            path = ctx.resolve_file(self.params.path)
        return CsvReplayReader(open_recording(path), self.params, ctx.output_schema.names)


class CsvReplayReader(SourceReader):
    def __init__(self, recording: Recording, params: CsvReplayParams, names: tuple[str, ...]) -> None:
        self.recording = recording
        self.params = params
        self.names = (*names, "_reject", "_raw")
        loops = params.loops if recording.rows else 1
        self.rows_total = recording.rows * loops if loops else None  # None when it repeats without end

    @cached_property
    def _pace(self) -> Pace:
        """When rows are due. The longest pause is one of playing, so a faster replay shortens longer gaps."""
        return self.recording.pace(int(self.params.longest_pause_s * self.params.speed * 1e6))

    def initial(self, now_ms: int) -> Position:
        return source_clock.initial_position(now_ms)

    def advance(self, start: Position, now_ms: int, rows_max: int) -> Position:
        if self.ended(start):
            return start
        row = int(start["row"])
        paced = self._paced(start)
        if not self.params.catch_up:
            due_ms = source_clock.clock_start_ms(paced) + self._due_ms(row)
            paced = source_clock.without_backlog(paced, now_ms, due_ms)
        end = min(self._rows_due(paced, now_ms), row + rows_max)
        if self.rows_total is not None:
            end = min(end, self.rows_total)
        return source_clock.at_row(paced, end, self._due_ms(end)) if end > row else start

    def _paced(self, position: Position) -> Position:
        """The position, if it was left with another pace. Recorded times do not follow from the pace."""
        due_ms = self._due_ms(int(position["row"]))
        return source_clock.repaced(position, due_ms, moves_times=not self.recording.timed)

    def _due_ms(self, row: int) -> float:
        """When a row is due, from the clock's start."""
        if self.params.rate is not None:
            return row / self.params.rate * 1000
        loop, index = divmod(row, self.recording.rows)
        due_us = loop * self._pace.period_us + self._pace.due_us(index)
        return due_us / 1000 / self.params.speed

    def _rows_due(self, position: Position, now_ms: int) -> int:
        if self.params.rate is not None:
            return source_clock.rows_due(position, now_ms, self.params.rate)
        elapsed_us = (now_ms - source_clock.clock_start_ms(position)) * 1000 * self.params.speed
        if elapsed_us < 0:
            return 0
        loop, rest = divmod(int(elapsed_us), self._pace.period_us)
        return loop * self.recording.rows + self._pace.rows_until(rest)

    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        row, last = source_clock.row_range(start, end)
        while row < last:
            loop, index = divmod(row, self.recording.rows)
            count = min(last - row, self.recording.rows - index)
            yield from self._rows(loop, index, count, end)
            row += count

    def _rows(self, loop: int, index: int, count: int, end: Position) -> Iterator[pa.RecordBatch]:
        timed = self.recording.timed
        names = (*self.names, "_time") if timed else self.names
        for batch in self.recording.batches(names, index, count):
            rows = np.arange(batch.num_rows, dtype=np.int64) + loop * self.recording.rows + index
            recorded = np.asarray(batch["_time"].cast(pa.int64()).to_numpy()) if timed else None
            times = pa.array(self._times_us(recorded, loop, rows, end), pa.timestamp("us", "UTC"))
            columns = [*(batch[name] for name in self.names), times, pa.array(rows, pa.int64())]
            found = pa.record_batch(columns, names=[*self.names, "_time", "_offset"])
            yield found if self.params.key is None else _with_key(found, self.params.key)
            index += batch.num_rows

    def _times_us(
        self, recorded: NDArray[np.int64] | None, loop: int, rows: NDArray[np.int64], end: Position
    ) -> NDArray[np.int64]:
        if recorded is None:
            assert self.params.rate is not None
            return source_clock.start_us(end, rows) + (rows * 1e6 / self.params.rate).astype(np.int64)
        since = recorded + loop * self._pace.recorded_us if loop else recorded
        if not self.params.restamp:
            return np.asarray(since)
        return np.asarray(since - self.recording.first_us + source_clock.start_us(end, rows))

    def rows_between(self, start: Position, end: Position) -> int:
        first, last = source_clock.row_range(start, end)
        return last - first

    def ended(self, position: Position) -> bool:
        return self.rows_total is not None and int(position["row"]) >= self.rows_total

    def pause_shift(self, position: Position, paused_ms: int) -> Position:
        return source_clock.shifted(position, paused_ms)

    def due_ms(self, start: Position, end: Position) -> float | None:
        if self.ended(start):
            return None
        return source_clock.clock_start_ms(self._paced(end)) + self._due_ms(int(start["row"]))


def _with_key(rows: pa.RecordBatch, key: str) -> pa.RecordBatch:
    """Rows without a value in the key's column are refused."""
    if not rows[key].null_count:
        return rows
    without = pc.and_(pc.is_null(rows[key]), pc.is_null(rows["_reject"]))
    reject = pc.if_else(
        without, pa.scalar(f'column "{key}" has no value, and it is the key'), rows["_reject"]
    )
    return rows.set_column(rows.schema.get_field_index("_reject"), "_reject", reject)
