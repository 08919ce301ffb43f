"""State: the line that fits the last values best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators import look_back
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, TooManyKept
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.sdk import Params


class Per(StrEnum):
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


_SECONDS = {Per.SECOND: 1, Per.MINUTE: 60, Per.HOUR: 3600, Per.DAY: 86_400}


class TrendParams(Params):
    column: NumericColumn
    window_s: float = Field(default=3600.0, gt=0, le=31 * 86_400, description="how far back the line goes")
    per: Per = Field(default=Per.HOUR, description="the slope is the change in this time")
    min_count: int = Field(default=2, ge=2, le=KEPT_MAX, description="how many values a line needs")
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


@dataclass(frozen=True)
class Line:
    slope: float  # per second
    first: float  # the line's value at the oldest point
    last: float  # and at the newest one
    r_squared: float | None  # 0..1; None when all values are the same


class Trend(KeyColumns):
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
    output row, and neither does a line that is too steep for a number. At most 20,000 values are kept for
    each key. A further row goes to the dead letters until older values have left the window. If there are
    more values than that, aggregate them first.

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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        values, times_ms = rows.floats(self.params.column), rows.times_ms
        window: list[list[float]] = state.setdefault("points", [])
        for place in range(first, end):
            value, now_ms = values[place], times_ms[place]
            if value is None:
                continue
            past = look_back.taken(window, now_ms, value, self.params.window_s)
            if isinstance(past, TooManyKept):
                rows.reject(place, past)
                continue
            points = [*past, (now_ms, value)]
            line = fitted(points) if len(points) >= self.params.min_count else None
            if line is None:
                continue
            slope = line.slope * _SECONDS[self.params.per]
            began_ms = int(points[0][0])
            made = (value, slope, line.r_squared, len(points), began_ms, line.first, line.last)
            rows.made.append((place, now_ms, *made))


def fitted(points: Sequence[look_back.Point]) -> Line | None:
    """Returns the line that fits by least squares, for (ms, value) in the order of time. Returns None if all
    have the same time, or no number can hold the line.

    It computes from the first time on and about the means, so that times since 1970 cost no digits.
    """
    count = len(points)
    seconds = [(at_ms - points[0][0]) / 1000 for at_ms, _ in points]
    values = [value for _, value in points]
    try:
        mean_s, mean = math.fsum(seconds) / count, math.fsum(values) / count
        apart = [(s - mean_s, value - mean) for s, value in zip(seconds, values, strict=True)]
        times = math.fsum(s * s for s, _ in apart)
        if times == 0:
            return None
        if min(values) == max(values):
            return Line(0.0, values[0], values[0], None)
        slope = math.fsum(s * y for s, y in apart) / times
        spread = math.fsum(y * y for _, y in apart)
    # fsum raises these for results that are too large and for opposite infinities
    except (OverflowError, ValueError):
        return None
    ends = (mean - slope * mean_s, mean + slope * (seconds[-1] - mean_s))
    if not all(map(math.isfinite, (slope * _SECONDS[Per.DAY], spread, *ends))):
        return None
    return Line(slope, *ends, min(1.0, slope * slope * times / spread) if spread else None)
