"""State: how a value changes from row to row."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, finite
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NewColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns, KeyedRows
from pipeline_runtime.operators.sdk import Params


class Gives(StrEnum):
    LAG = "lag"
    DIFFERENCE = "difference"
    PERCENT = "percent"
    DERIVATIVE = "derivative"


class DifferenceParams(Params):
    column: NumericColumn
    gives: Gives = Gives.DIFFERENCE
    periods: int = Field(default=1, ge=1, le=1000, description="how many rows back the compared row is")
    name: NewColumn = Field(default="difference", description="the name of the new column")
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class Difference(KeyColumns):
    """Compares a column with its value some rows earlier, for each key, and adds the result to each row.

    | gives | |
    |---|---|
    | lag | the earlier value |
    | difference | value - earlier value |
    | percent | the difference in percent of the earlier value's magnitude; null if that is 0 |
    | derivative | the difference per second of event time; null if no time has passed |

    A row whose value is null gets null, and later rows are not compared with it. The first rows of a key get
    null, too. A result that is too large for a number is null. Rows are taken in the order in which they
    arrive.
    """

    type = "difference"
    title = "Difference"
    summary = "The change against an earlier row, also in percent or per second"
    category = "state"
    icon = "diff"
    Params = DifferenceParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the last values of each key: the next rows have nothing to compare with"
    example = {"column": "value", "gives": "derivative", "name": "per_second"}

    params: DifferenceParams

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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        values, times_ms, periods = rows.values(self.params.column), rows.times_ms, self.params.periods
        before: list[list[Any]] = state.setdefault("before", [])
        for place in range(first, end):
            value, now_ms, found = values[place], times_ms[place], None
            if value is not None:
                if len(before) >= periods:
                    at_ms, earlier = before[-periods]
                    found = finite(self._change(value, earlier, (now_ms - at_ms) / 1000))
                before.append([now_ms, value])
            rows.made.append((place, now_ms, found))
        del before[:-periods]

    def _change(self, value: float, before: float, seconds: float) -> float | None:
        gives = self.params.gives
        if gives is Gives.LAG:
            return float(before)
        if gives is Gives.DIFFERENCE:
            return float(value - before)
        if gives is Gives.PERCENT:
            return 100 * (value - before) / abs(before) if before else None
        return (value - before) / seconds if seconds else None
