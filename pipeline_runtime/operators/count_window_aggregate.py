"""State: aggregates over the last n events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.count_windows import Values, Windows
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, Joined, KeyStates
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, newest, up_to, whole_steps
from pipeline_runtime.operators.sdk import Params


class CountWindowAggregateParams(Params):
    size: int = Field(
        ge=1, le=100_000, title="Rows in a window", description="how many events are in a window"
    )
    every: int = Field(
        default=1,
        ge=1,
        le=100_000,
        title="Rows from one result to the next",
        description="emit a row after every so many events; 1: after each event",
    )
    partial: bool = Field(
        default=False,
        title="Give results before the first window is full",
        description="emit rows before the first window is full, too",
    )
    key: ColumnName | None = Field(
        default=None,
        title="For each",
        description="each value of this column has its own window; empty: the stream's key",
    )
    aggregates: Aggregates


class CountWindowAggregate(KeyArrays):
    """Aggregates the last `size` events of each key. An event is a row.

    With `every: 1`, each event gives a row over the last `size` events (a sliding window). With `every` equal
    to `size`, every `size` events give one row (a tumbling window). The element emits no row before `size`
    events have arrived, unless `partial` is on. Without `key`, the record's own key counts. A stream without
    keys has one window. The element takes events in the order in which they arrive, and `first` and `last`
    follow that order. Otherwise the functions are those of the window aggregate.

    Output: the key's column, if there is one, and the aggregates. The event time is that of the last event.
    """

    type = "count-window-aggregate"
    title = "Count window aggregate"
    summary = "Computes average, minimum, maximum, ... of the last n events"
    category = "state"
    icon = "list-end"
    Params = CountWindowAggregateParams
    state_params = frozenset({"key", "aggregates"})
    other_columns = "more"
    keeps = "the windows that are not full yet: the events in them are not counted again"
    passes_on = False
    example = {"size": 10, "aggregates": [{"function": "avg", "column": "value", "as": "average"}]}

    params: CountWindowAggregateParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        then = newest(whole_steps(self.params.size, self.params.every))
        return {"in": Came(None, made.time_ms, up_to(self.is_of_key(made), is_same(made, {}), then))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            fields = (*self.key_of(schema, check), *aggregate_fields(self.params.aggregates, schema, check))
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return {
            "seen": Column.COUNT,
            "rows": Column.COUNT,
            **{_of(name): _kind(schema, name) for name in self.numbers_of()},
        }

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        size, every = self.params.size, self.params.every
        joined = Joined(states["rows"], rows.counts)
        number = joined.new_numbers() + 1 + np.repeat(states["seen"], joined.new_counts)
        ends = joined.new + 1
        counts = np.minimum(ends - np.repeat(joined.starts, joined.new_counts), size)
        out = np.flatnonzero((number % every == 0) & ((counts == size) | self.params.partial))
        values = {name: Values(rows, name, states[_of(name)], joined) for name in self.numbers_of()}
        windows = Windows((ends - counts)[out], counts[out])
        made = [
            windows.counts if item.column is None else values[item.column].made(item.function, windows)
            for item in self.params.aggregates
        ]
        rows.give(out, rows.times[out], *made)
        states["seen"] = states["seen"] + rows.counts
        states["rows"] = np.minimum(joined.counts, size)
        for name, each in values.items():
            states[_of(name)] = each.last(size)

    def numbers_of(self) -> tuple[str, ...]:
        names = (item.column for item in self.params.aggregates if item.column is not None)
        return tuple(dict.fromkeys(names))


def _of(name: str) -> str:
    """Returns the name of the state's column for that column."""
    return f"values of {name}"


def _kind(schema: StreamSchema, name: str) -> Column:
    field = schema.field(name)
    return Column.NUMBERS if field is not None and field.type is FieldType.NUMBER else Column.VALUES
