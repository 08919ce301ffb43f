"""State: where a signal changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, ByKey, number
from pipeline_runtime.operators.columns import SIGNALS, ColumnName, SchemaCheck, SignalColumn
from pipeline_runtime.operators.sdk import Params, Timers


class Edges(StrEnum):
    BOTH = "both"
    RISING = "rising"
    FALLING = "falling"


class EdgeDetectionParams(Params):
    columns: tuple[SignalColumn, ...] = Field(
        min_length=1, max_length=50, description="the signals to watch: true or false, or numbers"
    )
    edges: Edges = Edges.BOTH
    threshold: float | None = Field(
        default=None,
        description="a number above it is high, any other is low; empty: every change is an edge",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class EdgeDetection(ByKey):
    """Emits a row when a signal changes: when its value differs from the one before it, for each key.

    A change to true or to a greater number is a rising edge. A change to false or to a smaller number is a
    falling edge. With a `threshold`, a number is high if it is above the threshold and low otherwise, and
    only a change from low to high or back is an edge. The first value of a signal is not an edge. Null is
    ignored: the last value before it counts. Rows are taken in the order in which they arrive.

    Output: the key's column, if there is one, `signal` (the column's name), `edge` (rising or falling), and
    the values `before` and `after` (true is 1). The event time is that of the row with the change. If several
    signals change in one row, there is an output row for each, in the order of `columns`.
    """

    type = "edge-detection"
    title = "Edge detection"
    summary = "Finds where a signal rises or falls"
    category = "state"
    icon = "square-activity"
    Params = EdgeDetectionParams
    state_params = frozenset({"columns", "threshold", "key"})
    other_columns = "more"
    keeps = "the last value of each signal: the next value is not an edge"
    example = {"columns": ["valve"], "edges": "rising"}

    params: EdgeDetectionParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns):
                check.column(schema, name, f"params.columns[{index}]", SIGNALS)
            fields = (
                *self.key_of(schema, check),
                SchemaField(name="signal", type=FieldType.STRING),
                SchemaField(name="edge", type=FieldType.STRING),
                SchemaField(name="before", type=FieldType.NUMBER),
                SchemaField(name="after", type=FieldType.NUMBER),
            )
            check.unique([field.name for field in fields], "params.key")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        for name in self.params.columns:
            if row[name] is None:
                continue
            value, before = number(row[name]), state.get(name)
            state[name] = value
            levels = (self._level(row[name], before), self._level(row[name], value))
            if before is None or levels[0] == levels[1]:
                continue
            edge = Edges.RISING if levels[1] > levels[0] else Edges.FALLING
            if self.params.edges in (Edges.BOTH, edge):
                yield self.keyed(row, signal=name, edge=edge.value, before=before, after=value)

    def _level(self, column: Any, value: float | None) -> float:
        """`column` is a value of the column as it came, which says whether it is true or false."""
        if value is None or self.params.threshold is None or isinstance(column, bool):
            return value or 0
        return value > self.params.threshold
