"""State: the last values of a signal beside each other, in the form that a model takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NewColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, Joined, KeyStates
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, named, newest, up_to, whole_steps
from pipeline_runtime.operators.sdk import Params

SIZE_MAX = 500


class LastValuesParams(Params):
    column: NumericColumn = Field(description="the column of numbers whose last values are added")
    size: int = Field(
        ge=2,
        le=SIZE_MAX,
        title="How many values",
        description="how many values a row gets, including its own",
    )
    every: int = Field(
        default=1,
        ge=1,
        le=100_000,
        title="Rows from one result to the next",
        description="emit a row after every so many rows; 1: after each row",
    )
    name: NewColumn = Field(
        default="v",
        title="New columns begin with",
        description="the name of the new columns, to which their number is added",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class LastValues(KeyArrays):
    """Adds the last `size` values of a column to a row, for each key. `v0` is the oldest value, and the last
    one is the row's own. In this way a model gets a window of a signal: its input takes `columns: [v0]` with
    a `count` equal to `size`.

    The first row comes out when the first window is complete. With `every`, only every so many rows come out:
    with `every: 32` and 64 values, half of each window is new. The element ignores a row whose value is null.
    It takes rows in the order in which they arrive, whatever their event time is.
    """

    type = "last-values"
    title = "Last values"
    summary = "Adds the last n values of a column as columns, for a model"
    category = "state"
    icon = "group"
    Params = LastValuesParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the last values of each key: the next full window needs as many new rows"
    example = {"column": "value", "size": 64, "every": 32}

    params: LastValuesParams

    @property
    def _names(self) -> list[str]:
        return [f"{self.params.name}{place}" for place in range(self.params.size)]

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        then = newest(whole_steps(self.params.size, self.params.every), self.params.column)
        is_trigger = is_same(made, named(inputs["in"].names))
        return {"in": Came(None, made.time_ms, up_to(self.is_of_key(made), is_trigger, then))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            self.key_of(schema, check)
            unit = source.unit if source is not None else None
            new = (SchemaField(name=name, type=FieldType.NUMBER, unit=unit) for name in self._names)
            fields = (*schema.fields, *new)
            check.unique([field.name for field in fields], "params.name")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return {"window": Column.NUMBERS, "seen": Column.COUNT}

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        size, every = self.params.size, self.params.every
        places, kept = rows.valid(self.params.column), states["window"]
        joined = Joined(kept.counts, rows.counts_of(places))
        window = joined.lists(kept.numbers, rows.array(self.params.column)[places])
        # Counted from 0. It says which rows come out, and grows no further.
        number = joined.new_numbers() + 1 + np.repeat(states["seen"], joined.new_counts)
        out = np.flatnonzero(number % every == 0)
        out = out[np.isin(out, joined.new_behind(size - 1), assume_unique=True)]
        oldest, at = joined.new[out] - size + 1, places[out]
        rows.give(at, rows.times[at], *(window.numbers[oldest + place] for place in range(size)))
        states["window"] = window.last(size)
        states["seen"] = (states["seen"] + joined.new_counts) % every
