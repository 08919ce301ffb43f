"""State: where a signal changes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import SIGNALS, ColumnName, SchemaCheck, SignalColumn
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, Joined, KeyStates, is_integer
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, newest, up_to
from pipeline_runtime.operators.sdk import Params


class Edges(StrEnum):
    BOTH = "both"
    RISING = "rising"
    FALLING = "falling"


class EdgeDetectionParams(Params):
    columns: tuple[SignalColumn, ...] = Field(
        min_length=1, max_length=50, description="the signals to watch: true or false, or numbers"
    )
    edges: Edges = Field(default=Edges.BOTH, description="which edges give a row")
    threshold: float | None = Field(
        default=None,
        title="On from this value",
        description="a number above it is high, any other is low; empty: every change is an edge. It has no"
        " effect on true and false",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class EdgeDetection(KeyArrays):
    """Emits a row when a signal changes: when its value differs from the one before it, for each key.

    A change to true or to a greater number is a rising edge. A change to false or to a smaller number is a
    falling edge. With a `threshold`, a number is high if it is above the threshold and low otherwise, and
    only a change from low to high or back is an edge. The first value of a signal is not an edge. The element
    ignores null: the last value before it counts. It takes rows in the order in which they arrive.

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

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        signal = str(made.values.get("signal"))
        is_trigger = is_same(made, {"after": signal})
        return {"in": Came(None, made.time_ms, up_to(self.is_of_key(made), is_trigger, newest(2, signal)))}

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

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return {
            name: Column.WHOLES if is_integer(schema, name) else Column.NUMBERS
            for name in self.params.columns
        }

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        for name in dict.fromkeys(self.params.columns):
            self._find(name, rows, states)

    def _find(self, name: str, rows: KeyedRows, states: KeyStates) -> None:
        places, last = rows.valid(name), states[name]
        type_ = pa.int64() if is_integer(rows.schema, name) else pa.float64()
        joined = Joined(last.counts, rows.counts_of(places))
        values = joined.lists(last.numbers, rows.array(name, type_)[places])
        states[name] = values.last(1)
        compared = joined.new_behind(1)
        before, after = values.numbers[joined.new[compared] - 1], values.numbers[joined.new[compared]]
        threshold = None if rows.is_boolean(name) else self.params.threshold
        if threshold is None:
            rises, falls = after > before, after < before
        else:
            was_high, is_high = before > threshold, after > threshold
            rises, falls = is_high & ~was_high, was_high & ~is_high
        wanted = self.params.edges
        found = (rises & (wanted is not Edges.FALLING)) | (falls & (wanted is not Edges.RISING))
        at = places[compared][found]
        edge = pc.if_else(pa.array(rises[found]), Edges.RISING.value, Edges.FALLING.value)
        rows.give(at, rows.times[at], pa.repeat(name, len(at)), edge, before[found], after[found])

    def numbers_of(self) -> tuple[str, ...]:
        return self.params.columns
