"""State: how far a value is from what it was before."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators import look_back
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, TooManyKept, finite
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.sdk import Params


class Baseline(StrEnum):
    MEAN = "mean"
    MEDIAN = "median"
    FIRST = "first"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"


_OF: dict[Baseline, Callable[[Sequence[float]], float]] = {
    Baseline.MEAN: statistics.fmean,
    Baseline.MEDIAN: statistics.median,
    Baseline.MINIMUM: min,
    Baseline.MAXIMUM: max,
}


class BaselineChangeParams(Params):
    column: NumericColumn
    window_s: float = Field(
        default=3600.0, gt=0, le=31 * 86_400, description="how far back the baseline looks"
    )
    baseline: Baseline = Baseline.FIRST
    min_count: int = Field(default=1, ge=1, le=KEPT_MAX, description="how many values a baseline needs")
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class BaselineChange(KeyColumns):
    """Adds to each row by how many percent a column is above or below a baseline.

    The baseline is the mean, the median, the first, the minimum or the maximum of the earlier values of the
    same key. Earlier values are those that have arrived before the row and whose event time is at most
    `window_s` before the row's event time. The row's own value does not count. A row that arrives late looks
    back from its own event time.

    The change is null until there are `min_count` values, and when the baseline is 0 or not a number. It is
    given in percent of the baseline's absolute value. A row without a value gets null and does not count.

    At most 20,000 values are kept for each key. A further row goes to the dead letters until older values
    have left the window. If there are more values than that, aggregate them first.

    Output: the input's columns, `baseline` and `change_percent`.
    """

    type = "baseline-change"
    title = "Change against a baseline"
    summary = "The change in percent against earlier values"
    category = "state"
    icon = "trending-up-down"
    Params = BaselineChangeParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the values of the window: the next rows have no baseline"
    example = {"column": "interval_s", "window_s": 86_400, "baseline": "first"}

    params: BaselineChangeParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            self.key_of(schema, check)
            fields = (
                *schema.fields,
                SchemaField(name="baseline", type=FieldType.NUMBER, unit=source.unit if source else None),
                SchemaField(name="change_percent", type=FieldType.NUMBER, unit="%"),
            )
            check.unique([field.name for field in fields], "inputs.in")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        values, times_ms = rows.values(self.params.column), rows.times_ms
        window: list[list[float]] = state.setdefault("window", [])
        for place in range(first, end):
            value, now_ms = values[place], times_ms[place]
            if value is None:
                rows.made.append((place, now_ms, None, None))
                continue
            past = look_back.taken(window, now_ms, value, self.params.window_s)
            if isinstance(past, TooManyKept):
                rows.reject(place, past)
                continue
            baseline = self._baseline(past) if len(past) >= self.params.min_count else None
            change = finite(100 * (value - baseline) / abs(baseline)) if baseline else None
            rows.made.append((place, now_ms, baseline, change))

    def _baseline(self, past: Sequence[look_back.Point]) -> float | None:
        if self.params.baseline is Baseline.FIRST:
            return float(past[0][1])
        try:
            return finite(float(_OF[self.params.baseline]([value for _, value in past])))
        except OverflowError:
            return None
