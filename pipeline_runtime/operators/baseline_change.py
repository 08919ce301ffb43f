"""State: how far a value is from what it was before."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from statistics import median

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators import look_back
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, KeyStates, finite
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import (
    Came,
    TracedRow,
    named,
    same_row,
)
from pipeline_runtime.operators.sdk import Params


class Baseline(StrEnum):
    MEAN = "mean"
    MEDIAN = "median"
    FIRST = "first"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"


class BaselineChangeParams(Params):
    column: NumericColumn = Field(description="the column of numbers to compare")
    window_s: float = Field(
        default=3600.0,
        gt=0,
        le=31 * 86_400,
        title="How far back it looks, in seconds",
        description="how far back the baseline looks",
    )
    baseline: Baseline = Field(
        default=Baseline.FIRST, description="which of the earlier values, or what of them, is the baseline"
    )
    min_count: int = Field(
        default=1,
        ge=1,
        le=KEPT_MAX,
        title="Values that a baseline needs",
        description="how many values a baseline needs",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class BaselineChange(KeyArrays):
    """Adds to each row by how many percent a column is above or below a baseline.

    The baseline is the mean, the median, the first, the minimum or the maximum of the earlier values of the
    same key. Earlier values are those that have arrived before the row and whose event time is at most
    `window_s` before the row's event time. The row's own value does not count. A row that arrives late looks
    back from its own event time.

    The change is null until there are `min_count` values, and also if the baseline is 0 or not a number. It
    is a percentage of the baseline's absolute value. A row without a value gets null and does not count.

    The element keeps at most 20,000 values for each key. A further row goes to the dead letters until older
    values have left the window. If you have more values than that, aggregate them first.

    Output: the input's columns, `baseline` and `change_percent`.
    """

    type = "baseline-change"
    title = "Change against a baseline"
    summary = "Gives the change in percent against earlier values"
    category = "state"
    icon = "trending-up-down"
    Params = BaselineChangeParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the values of the window: the next rows have no baseline"
    example = {"column": "interval_s", "window_s": 86_400, "baseline": "first"}

    params: BaselineChangeParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        column, names = self.params.column, named(inputs["in"].names)
        if made.values.get(column) is None:  # it was compared with nothing
            return {"in": same_row(made, names)}
        came = look_back.came_from(made, column, self.params.window_s, self.is_of_key(made), names)
        return {"in": came}

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

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return look_back.COLUMNS

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        baseline, change = (np.full(len(rows.times), np.nan) for _ in range(2))
        for found in look_back.windows(rows, self.params.column, states, self.params.window_s):
            with np.errstate(all="ignore"):
                made = finite(self._baselines(found))
                made[found.ends - found.firsts < self.params.min_count] = np.nan
                values = found.values[found.ends]
                baseline[found.places] = made
                change[found.places] = finite(
                    100 * (values - made) / np.where(made == 0, np.nan, np.abs(made))
                )
        places = rows.accepted()
        rows.give(places, rows.times[places], baseline[places], change[places])

    def _baselines(self, found: look_back.Windows) -> NDArray[np.float64]:
        """Returns the baseline of each row. Where its window is empty, it has no meaning."""
        values, firsts, ends = found.values, found.firsts, found.ends
        match self.params.baseline:
            case Baseline.FIRST:
                return values[firsts]
            case Baseline.MEDIAN:
                spans = zip(firsts.tolist(), ends.tolist(), strict=True)
                return np.array(
                    [median(values[first : max(end, first + 1)].tolist()) for first, end in spans]
                )
            case Baseline.MEAN:
                return _over(np.add, found) / (ends - firsts)
            case Baseline.MINIMUM:
                return _over(np.minimum, found)
            case Baseline.MAXIMUM:
                return _over(np.maximum, found)


def _over(function: np.ufunc, found: look_back.Windows) -> NDArray[np.float64]:
    """Returns the function over each window."""
    # NumPy reduces from each number to the next: every second result is what lies between two windows.
    made: NDArray[np.float64] = function.reduceat(
        found.values, np.stack([found.firsts, found.ends], 1).ravel()
    )
    return made[::2]
