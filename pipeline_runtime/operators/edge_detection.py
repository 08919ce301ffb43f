"""State: where a signal changes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import SIGNALS, ColumnName, SchemaCheck, SignalColumn
from pipeline_runtime.operators.key_columns import KeyColumns, KeyedRows
from pipeline_runtime.operators.sdk import Params


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


class EdgeDetection(KeyColumns):
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
    passes_on = False
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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        watched = [(name, rows.numbers(name), self._threshold(rows, name)) for name in self.params.columns]
        times_ms, wanted = rows.times_ms, self.params.edges
        for place in range(first, end):
            for name, values, threshold in watched:
                value = values[place]
                if value is None:
                    continue
                before = state.get(name)
                state[name] = value
                if before is None:
                    continue
                low, high = (before, value) if threshold is None else (before > threshold, value > threshold)
                if low == high:
                    continue
                edge = Edges.RISING if high > low else Edges.FALLING
                if wanted in (Edges.BOTH, edge):
                    rows.made.append((place, times_ms[place], name, edge.value, float(before), float(value)))

    def numbers_of(self) -> tuple[str, ...]:
        return self.params.columns

    def _threshold(self, rows: KeyedRows, name: str) -> float | None:
        """True and false have no threshold."""
        return None if rows.is_boolean(name) else self.params.threshold
