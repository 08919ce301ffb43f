"""State: the line that fits the last values best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators import look_back
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, KeyStates, ranges
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import (
    Came,
    TracedRow,
)
from pipeline_runtime.operators.sdk import Params


class Per(StrEnum):
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


_SECONDS = {Per.SECOND: 1, Per.MINUTE: 60, Per.HOUR: 3600, Per.DAY: 86_400}


class TrendParams(Params):
    column: NumericColumn = Field(description="the column of numbers through which the line goes")
    window_s: float = Field(
        default=3600.0,
        gt=0,
        le=31 * 86_400,
        title="How far back the line goes, in seconds",
        description="how far back the line goes",
    )
    per: Per = Field(
        default=Per.HOUR, title="Change in each", description="the slope is the change in this time"
    )
    min_count: int = Field(
        default=2,
        ge=2,
        le=KEPT_MAX,
        title="Values that a line needs",
        description="how many values a line needs",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


@dataclass(frozen=True)
class Lines:
    """A line for each window."""

    windows: look_back.Windows
    slope: NDArray[np.float64]  # per second
    first: NDArray[np.float64]  # the line's value at the oldest point
    last: NDArray[np.float64]  # and at the newest one
    r_squared: NDArray[np.float64]  # 0..1; NaN when all values are the same


class Trend(KeyArrays):
    """Fits a line through the values of the last `window_s`, for each key, by least squares over event time
    (linear regression). There is one output row for each value, as soon as there are `min_count` values at
    two or more different times.

    | column | |
    |---|---|
    | `slope` | by how much the line rises per second, minute, hour or day (`per`); negative: it falls |
    | `r_squared` | 1: all values lie on the line, 0: it explains nothing; null: the values are all equal |
    | `count` | how many values there are |
    | `line_from`, `line_start` | the time and the height of the line at the oldest value |
    | `line_end` | its height at the row's own time; with the two columns above it can be drawn |

    The values are those that have arrived already and whose event time is at most `window_s` before that of
    the row. So a row that arrives late looks back from its own event time. A row without a value gives no
    output row, and neither does a line that is too steep for a number. The element keeps at most 20,000
    values for each key. A further row goes to the dead letters until older values have left the window. If
    you have more values than that, aggregate them first.

    Output: the key's column, if there is one, the column itself, and these.
    """

    type = "trend"
    title = "Trend"
    summary = "Fits a line through the last values and gives its slope (linear regression)"
    category = "state"
    icon = "trending-up"
    Params = TrendParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the values of the window: the line starts again"
    passes_on = False
    example = {"column": "interval_s", "window_s": 86_400, "per": "hour"}

    params: TrendParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        column = self.params.column
        names, is_mine = {column: column}, self.is_of_key(made)
        return {"in": look_back.came_from(made, column, self.params.window_s, is_mine, names)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            unit = source.unit if source is not None else None

            def of_numbers(name: str, unit: str | None) -> SchemaField:
                return SchemaField(name=name, type=FieldType.NUMBER, unit=unit)

            fields = (
                *self.key_of(schema, check),
                of_numbers(self.params.column, unit),
                of_numbers("slope", f"{unit}/{self.params.per.value}" if unit else None),
                of_numbers("r_squared", None),
                SchemaField(name="count", type=FieldType.INTEGER),
                SchemaField(name="line_from", type=FieldType.TIMESTAMP),
                of_numbers("line_start", unit),
                of_numbers("line_end", unit),
            )
            check.unique([field.name for field in fields], "params.column")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return look_back.COLUMNS

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        for found in look_back.windows(rows, self.params.column, states, self.params.window_s):
            counts = found.ends - found.firsts + 1
            lines = fitted(found.some(counts >= self.params.min_count))
            slope, windows = lines.slope * _SECONDS[self.params.per], lines.windows
            began_ms, values = windows.times_ms[windows.firsts], windows.values[windows.ends]
            count = windows.ends - windows.firsts + 1
            made = values, slope, lines.r_squared, count, began_ms, lines.first, lines.last
            rows.give(windows.places, rows.times[windows.places], *made)


def fitted(windows: look_back.Windows) -> Lines:
    """Returns the lines that fit by least squares, each through the values of a window and that of its row.
    There is none where all have the same time, or no number can hold the line.

    It computes from the first time on and about the means, so that times since 1970 cost no digits.
    """
    counts = windows.ends - windows.firsts + 1
    if not len(counts):
        return Lines(windows, *(np.empty(0) for _ in range(4)))
    all_ = ranges(windows.firsts, counts)
    starts = np.cumsum(counts) - counts

    def total(each: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(each, starts)

    seconds = (windows.times_ms[all_] - np.repeat(windows.times_ms[windows.firsts], counts)) / 1000
    values = windows.values[all_]
    with np.errstate(all="ignore"):
        mean_s, mean = total(seconds) / counts, total(values) / counts
        s, y = seconds - np.repeat(mean_s, counts), values - np.repeat(mean, counts)
        times, spread = total(s * s), total(y * y)
        flat = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
        own = windows.values[windows.ends]
        slope = np.where(flat, 0.0, total(s * y) / times)
        first = np.where(flat, own, mean - slope * mean_s)
        last = np.where(flat, own, mean + slope * (seconds[starts + counts - 1] - mean_s))
        r_squared = np.where(flat | (spread == 0), np.nan, np.minimum(1.0, slope * slope * times / spread))
        fits = (times > 0) & np.isfinite(slope * _SECONDS[Per.DAY]) & np.isfinite(first) & np.isfinite(last)
        fits &= flat | np.isfinite(spread)
    return Lines(windows.some(fits), slope[fits], first[fits], last[fits], r_squared[fits])
