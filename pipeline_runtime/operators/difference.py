"""State: how a value changes from row to row."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NewColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, Joined, KeyStates, finite, is_integer
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, named, newest, same_row, up_to
from pipeline_runtime.operators.sdk import Params

_EXACT = 2**45
"""Up to this size, a hundred times the difference of two integers is exact as a float."""


class Gives(StrEnum):
    LAG = "lag"
    DIFFERENCE = "difference"
    PERCENT = "percent"
    DERIVATIVE = "derivative"


class DifferenceParams(Params):
    column: NumericColumn = Field(description="the column of numbers to compare")
    gives: Gives = Field(
        default=Gives.DIFFERENCE, title="What the new column holds", description="what the new column holds"
    )
    periods: int = Field(
        default=1,
        ge=1,
        le=1000,
        title="Compare with the row so many rows back",
        description="how many rows back the compared row is",
    )
    name: NewColumn = Field(
        default="difference", title="Name of the new column", description="the name of the new column"
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class Difference(KeyArrays):
    """Compares a column with its value some rows earlier, for each key, and adds the result to each row.

    | gives | |
    |---|---|
    | lag | the earlier value |
    | difference | value - earlier value |
    | percent | the difference in percent of the earlier value's magnitude; null if that is 0 |
    | derivative | the difference per second of event time; null if no time has passed |

    A row whose value is null gets null, and the element compares no later row with it. The first rows of a
    key get null, too. A result that is too large for a number is null. The element takes rows in the order in
    which they arrive.
    """

    type = "difference"
    title = "Difference"
    summary = "Gives the change against an earlier row, also in percent or per second"
    category = "state"
    icon = "diff"
    Params = DifferenceParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the last values of each key: the next rows have nothing to compare with"
    example = {"column": "value", "gives": "derivative", "name": "per_second"}

    params: DifferenceParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        column, names = self.params.column, named(inputs["in"].names)
        if made.values.get(column) is None:  # it was compared with nothing
            return {"in": same_row(made, names)}
        then = newest(self.params.periods + 1, column)
        return {"in": Came(None, made.time_ms, up_to(self.is_of_key(made), is_same(made, names), then))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            self.key_of(schema, check)
            unit = source.unit if source is not None else None
            new = SchemaField(name=self.params.name, type=FieldType.NUMBER, unit=self._unit(unit))
            fields = (*schema.fields, new)
            check.unique([field.name for field in fields], "params.name")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def _unit(self, unit: str | None) -> str | None:
        if self.params.gives is Gives.PERCENT:
            return "%"
        return f"{unit}/s" if unit and self.params.gives is Gives.DERIVATIVE else unit

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        values = Column.WHOLES if is_integer(schema, self.params.column) else Column.NUMBERS
        return {"times_ms": Column.WHOLES, "values": values}

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        name, periods = self.params.column, self.params.periods
        type_ = pa.int64() if is_integer(rows.schema, name) else pa.float64()
        places = rows.valid(name)
        kept_times, kept_values = states["times_ms"], states["values"]
        joined = Joined(kept_times.counts, rows.counts_of(places))
        times = joined.lists(kept_times.numbers, rows.times[places])
        values = joined.lists(kept_values.numbers, rows.array(name, type_)[places])
        compared = joined.new_behind(periods)
        at, before = joined.new[compared], joined.new[compared] - periods
        made = np.full(len(rows.times), np.nan)
        seconds = (times.numbers[at] - times.numbers[before]) / 1000
        made[places[compared]] = self._changes(values.numbers[at], values.numbers[before], seconds)
        rows.give(np.arange(len(made)), rows.times, made)
        states["times_ms"], states["values"] = times.last(periods), values.last(periods)

    def _changes(
        self, values: NDArray[Any], before: NDArray[Any], seconds: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        gives = self.params.gives
        if values.dtype == np.int64 and max(map(_largest, (values, before))) > _EXACT:
            # Python's integers have no end, and what is made of them is rounded once.
            values, before = values.astype(object), before.astype(object)
        with np.errstate(all="ignore"):
            if gives is Gives.LAG:
                return finite(before)
            if gives is Gives.DIFFERENCE:
                return finite(values - before)
            if gives is Gives.PERCENT:
                divided, divisor = 100 * (values - before), abs(before)
            else:
                divided, divisor = values - before, seconds
            zero = np.asarray(divisor == 0, bool)
            return finite(np.where(zero, np.nan, divided / np.where(zero, 1, divisor)))


def _largest(values: NDArray[np.int64]) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
