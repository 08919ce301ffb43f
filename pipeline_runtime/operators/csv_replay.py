"""Source: a recorded file, row by row, as if it happened now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, JsonValue

from pipeline_runtime.model.faults import did_you_mean, listed, words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.operators import source_clock
from pipeline_runtime.operators.columns import ColumnType, Decimal, Delimiter, SchemaCheck
from pipeline_runtime.operators.recording import (
    DATA,
    DEMOS,
    Layout,
    Recording,
    infer_columns,
    load_recording,
)
from pipeline_runtime.operators.sdk import (
    OperatorContext,
    Params,
    Position,
    SchemaMismatch,
    SourceOperator,
    SourceReader,
)
from pipeline_runtime.operators.times import checked_format

RATE_MAX = 1e6
"""Rows per second; a batch takes fewer, so this is as fast as the node can."""
_RATE_WITHOUT_TIMES = 10.0

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
    "x-table": {
        "reads": ["delimiter", "decimal", "header", "columns", "time_column", "time_format"],
        "time": ["time_column", "time_format"],
        "without_time": {"rate": _RATE_WITHOUT_TIMES},
    },
}
_DECIMALS: list[JsonValue] = [
    {"title": "A point, as in 1.5", "value": "."},
    {"title": "A comma, as in 1,5", "value": ","},
]
_PACES: list[JsonValue] = [
    {
        "title": "As recorded",
        "value": None,
        "needs": "time_column",
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


class CsvReplayParams(Params):
    path: str = Field(
        title="File",
        pattern=words_for_pattern(r"^(demo|upload):[A-Za-z0-9._-]+$", "choose a file or upload one"),
        description="demo:<name>, or upload:<id> for a file that you uploaded",
        json_schema_extra=_FILE,
    )
    time_column: str | None = Field(default=None, description="the column that holds the recorded time")
    time_format: Annotated[str, AfterValidator(checked_format)] = Field(
        default="iso",
        min_length=1,
        description="iso; epoch_s, epoch_ms, epoch_us or epoch_ns; or a pattern such as %d.%m.%Y %H:%M:%S",
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
        default=1.0, gt=0, le=1e6, description="2 is twice as fast as recorded, 0.5 half as fast"
    )
    loops: int = Field(
        default=1,
        ge=0,
        title="When it ends",
        description="how many times the file is played; 0: for ever",
        json_schema_extra={"x-choices": _ENDS},
    )
    delimiter: Delimiter = ","
    decimal: Decimal = Field(
        default=".",
        title="Decimal mark",
        description="a point, as in 1.5, or a comma, as in 1,5",
        json_schema_extra={"x-choices": _DECIMALS},
    )
    header: bool = Field(default=True, description="the first line holds the column names")
    columns: tuple[ColumnType, ...] | None = Field(
        default=None, description="names and types, in the file's order; empty: read from the file"
    )
    keep: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="keep only these columns; empty: all"
    )
    key: str | None = Field(default=None, description="the column that is the record's key")
    restamp: bool = Field(
        default=True,
        title="Rows get the time of the replay",
        description="shift the recorded times so that the first row is at the start of the replay",
    )
    catch_up: bool = Field(
        default=True, description="after a stop, send the rows that were due in the meantime"
    )


class CsvReplay(SourceOperator):
    """Replays a CSV file: a sample (`demo:debs2012`) or one that you uploaded (`upload:<id>`).

    Rows are sent at `rate` rows per second. At a million, the maximum, rows are sent as fast as the node can.
    Without a rate, rows are sent at the recorded times in `time_column`, and `speed` makes that faster or
    slower. The file is played once, and then the element ends. `loops` plays it several times, and `loops: 0`
    for ever. The time continues from one round to the next, so event time always rises.

    Event time is the recorded time, shifted so that the recording begins at the start of the replay.
    `restamp: false` keeps it as recorded. Without a time column, event time follows from the rate. If the
    rate differs from the recorded one, event time runs faster or slower than the clock, because the recorded
    intervals are kept.

    `time_format` says how the time column is written: ISO 8601 (`iso`), a number since 1970 in seconds to
    nanoseconds (`epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns`), or a pattern such as `%d.%m.%Y %H:%M:%S`. A
    time without a zone is read as UTC. When you choose a file, the editor reads its first 64 KiB, shows the
    first rows, and proposes the delimiter, the decimal mark, the time column and its format.

    Column names and types come from the first rows of the file, unless `columns` lists them. A row with a
    wrong number of cells goes to the dead letters with the reason, and so does a row with a cell that is not
    of its column's type. An empty cell is null, or an empty text in a string column. Files may be compressed
    with gzip, to a hundredth of their size at most. A row has at most 1 MiB.

    A row's time and content depend on its index alone. So the element can be stopped, moved and restored at
    any row. A pause stops the recording's clock. After a stop of more than 2 s the replay catches up with the
    rows that were due, unless `catch_up` is false.
    """

    type = "csv-replay"
    title = "CSV replay"
    summary = "Replays a CSV file at a fixed rate or at its recorded pace"
    category = "sources"
    icon = "file-play"
    Params = CsvReplayParams
    example = {"path": "demo:debs2012", "rate": 100, "loops": 0}

    params: CsvReplayParams

    def files(self) -> tuple[str, ...]:
        return (self.params.path,)

    @cached_property
    def layout(self) -> Layout:
        """How the file is read; raises SchemaMismatch when its columns cannot be known."""
        params = self.params
        demo = DEMOS.get(params.path)
        if demo is not None:
            return Layout(
                columns=demo.layout.columns,
                delimiter=demo.layout.delimiter,
                header=demo.layout.header,
                time_column=params.time_column or demo.layout.time_column,
                time_format=params.time_format,
            )
        if params.path.startswith("demo:"):
            hint = did_you_mean(params.path, DEMOS)
            raise SchemaMismatch("params.path", f"there is no {params.path}{hint} ({listed(DEMOS)})")
        columns = tuple(column.field() for column in params.columns or ())
        return Layout(
            columns or self._columns_of_file(),
            params.delimiter,
            params.header,
            params.time_column,
            params.time_format,
            params.decimal,
        )

    def _columns_of_file(self) -> tuple[SchemaField, ...]:
        path = self.params.path
        if self.describe_file is None:
            raise SchemaMismatch("params.columns", "the columns of the file are not known here; list them")
        try:
            params = self.params
            return infer_columns(self.describe_file(path), params.delimiter, params.header, params.decimal)
        except (FileNotFoundError, ValueError) as error:
            raise SchemaMismatch("params.path", str(error)) from error

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        layout, params = self.layout, self.params
        whole = StreamSchema(fields=layout.columns)
        with SchemaCheck() as check:
            if params.rate is None and layout.time_column is None:
                check.fail("params.rate", "choose a time column, or enter rows per second")
            check.unique(whole.names, "params.columns")
            if layout.time_column is not None:
                check.column(whole, layout.time_column, "params.time_column")
            for index, name in enumerate(params.keep or ()):
                check.column(whole, name, f"params.keep[{index}]")
            names = params.keep or whole.names
            kept = StreamSchema(fields=tuple(field for field in whole.fields if field.name in names))
            if params.key is not None:
                check.column(kept, params.key, "params.key")
        return StreamSchema(fields=kept.fields, key=params.key)

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> CsvReplayParams:
        if self.params.path in DEMOS:
            return self.params
        columns = tuple(
            ColumnType(name=field.name, type=field.type, unit=field.unit) for field in self.layout.columns
        )
        return self.params.model_copy(update={"columns": columns})

    def open(self, ctx: OperatorContext) -> SourceReader:
        if self.params.path in DEMOS:
            path = DATA / DEMOS[self.params.path].file
        else:
            path = ctx.resolve_file(self.params.path)
        return CsvReplayReader(load_recording(path, self.layout), self.params, ctx.output_schema.names)


class CsvReplayReader(SourceReader):
    def __init__(self, recording: Recording, params: CsvReplayParams, names: tuple[str, ...]) -> None:
        self.recording = recording
        self.params = params
        self.table = recording.table.select([*names, "_reject", "_raw"])
        loops = params.loops if recording.rows else 1
        self.rows_total = recording.rows * loops if loops else None  # None when it repeats without end

    def initial(self, now_ms: int) -> Position:
        return source_clock.initial_position(now_ms)

    def advance(self, start: Position, now_ms: int, rows_max: int) -> Position:
        if self.ended(start):
            return start
        row = int(start["row"])
        if not self.params.catch_up:
            start = source_clock.without_backlog(
                start, now_ms, source_clock.clock_start_ms(start) + self._due_ms(row)
            )
        end = min(self._rows_due(start, now_ms), row + rows_max)
        if self.rows_total is not None:
            end = min(end, self.rows_total)
        return source_clock.at_row(start, end) if end > row else start

    def _due_ms(self, row: int) -> float:
        """When a row is due, from the clock's start."""
        if self.params.rate is not None:
            return row / self.params.rate * 1000
        assert self.recording.due_us is not None
        loop, index = divmod(row, self.recording.rows)
        due_us = loop * self.recording.period_us + int(self.recording.due_us[index])
        return due_us / 1000 / self.params.speed

    def _rows_due(self, position: Position, now_ms: int) -> int:
        if self.params.rate is not None:
            return source_clock.rows_due(position, now_ms, self.params.rate)
        assert self.recording.due_us is not None
        elapsed_us = (now_ms - source_clock.clock_start_ms(position)) * 1000 * self.params.speed
        if elapsed_us < 0:
            return 0
        loop, rest = divmod(int(elapsed_us), self.recording.period_us)
        return loop * self.recording.rows + int(np.searchsorted(self.recording.due_us, rest, side="right"))

    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        row, last = source_clock.row_range(start, end)
        while row < last:
            loop, index = divmod(row, self.recording.rows)
            count = min(last - row, self.recording.rows - index)
            yield self._slice(loop, index, count, end)
            row += count

    def _slice(self, loop: int, index: int, count: int, end: Position) -> pa.RecordBatch:
        rows = np.arange(count, dtype=np.int64) + loop * self.recording.rows + index
        batch = self.table.slice(index, count).combine_chunks().to_batches()[0]
        times = pa.array(self._times_us(loop, index, rows, end), pa.timestamp("us", "UTC"))
        names = [*batch.schema.names, "_time", "_offset"]
        return pa.record_batch([*batch.columns, times, pa.array(rows, pa.int64())], names=names)

    def _times_us(self, loop: int, index: int, rows: NDArray[np.int64], end: Position) -> NDArray[np.int64]:
        recorded = self.recording.time_us
        if recorded is None:
            assert self.params.rate is not None
            return source_clock.start_us(end, rows) + (rows * 1e6 / self.params.rate).astype(np.int64)
        since = recorded[index : index + len(rows)] + loop * self.recording.period_us
        if not self.params.restamp:
            return np.asarray(since)
        return np.asarray(since - recorded[0] + source_clock.start_us(end, rows))

    def rows_between(self, start: Position, end: Position) -> int:
        first, last = source_clock.row_range(start, end)
        return last - first

    def ended(self, position: Position) -> bool:
        return self.rows_total is not None and int(position["row"]) >= self.rows_total

    def due_ms(self, start: Position, end: Position) -> float | None:
        if self.ended(start):
            return None
        return source_clock.clock_start_ms(end) + self._due_ms(int(start["row"]))

    def pause_shift(self, position: Position, paused_ms: int) -> Position:
        return source_clock.shifted(position, paused_ms)
