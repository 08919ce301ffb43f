"""State: the last values of a signal beside each other, in the form that a model takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NewColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns, KeyedRows
from pipeline_runtime.operators.sdk import Params

SIZE_MAX = 500


class LastValuesParams(Params):
    column: NumericColumn
    size: int = Field(ge=2, le=SIZE_MAX, description="how many values a row gets, including its own")
    every: int = Field(
        default=1, ge=1, le=100_000, description="emit a row after every so many rows; 1: after each row"
    )
    name: NewColumn = Field(
        default="v", description="the name of the new columns, to which their number is added"
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class LastValues(KeyColumns):
    """Adds the last `size` values of a column to a row, for each key. `v0` is the oldest value, and the last
    one is the row's own. In this way a model gets a window of a signal: its input takes `columns: [v0]` with
    a `count` equal to `size`.

    The first row comes out when the first window is complete. With `every` only every so many rows come out:
    with `every: 32` and 64 values, half of each window is new. A row whose value is null is ignored. Rows are
    taken in the order in which they arrive, whatever their event time is.
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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        values, times_ms, size = rows.floats(self.params.column), rows.times_ms, self.params.size
        window: list[float] = state.get("window", [])
        seen = state.get("seen", 0)
        for place in range(first, end):
            value = values[place]
            if value is None:
                continue
            window.append(value)
            # Counted from 0. It says which rows come out, and grows no further.
            seen = (seen + 1) % self.params.every
            if seen == 0 and len(window) >= size:
                rows.made.append((place, times_ms[place], *window[-size:]))
        state["window"], state["seen"] = window[-size:], seen
