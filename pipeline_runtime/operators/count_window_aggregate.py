"""State: aggregates over the last n events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields, evaluate
from pipeline_runtime.operators.by_key import from_state, to_state
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, newest, up_to, whole_steps
from pipeline_runtime.operators.sdk import Params


class CountWindowAggregateParams(Params):
    size: int = Field(ge=1, le=100_000, description="how many events are in a window")
    every: int = Field(
        default=1, ge=1, le=100_000, description="emit a row after every so many events; 1: after each event"
    )
    partial: bool = Field(default=False, description="emit rows before the first window is full, too")
    key: ColumnName | None = Field(
        default=None,
        title="For each",
        description="each value of this column has its own window; empty: the stream's key",
    )
    aggregates: Aggregates


class CountWindowAggregate(KeyColumns):
    """Aggregates the last `size` events of each key.

    With `every: 1` each event gives a row over the last `size` events (a sliding window). With `every` equal
    to `size` every `size` events give one row (a tumbling window). No row is emitted before `size` events
    have arrived, unless `partial` is on. Without `key`, the record's own key is used. A stream without keys
    has one window.

    Output: the key's column, if there is one, and the aggregates. The event time is that of the newest event.
    """

    type = "count-window-aggregate"
    title = "Count window aggregate"
    summary = "Average, minimum, maximum, ... of the last n events"
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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        size, every, aggregates = self.params.size, self.params.every, self.params.aggregates
        window: list[list[Any]] = state.get("window", [])
        columns = [
            [from_state(kept[index]) for kept in window] + rows.values(item.column)[first:end]
            for index, item in enumerate(aggregates)
            if item.column is not None
        ]
        seen, behind = state.get("seen", 0), len(window) - first + 1
        for place in range(first, end):
            seen += 1
            until = place + behind
            start = max(0, until - size)
            if seen % every or (until < size and not self.params.partial):
                continue
            values = iter(columns)
            made = (
                evaluate(
                    item.function, [] if item.column is None else next(values)[start:until], until - start
                )
                for item in aggregates
            )
            rows.made.append((place, rows.times_ms[place], *made))
        state["seen"] = seen
        state["window"] = self._kept(columns, len(window) + end - first)

    def numbers_of(self) -> tuple[str, ...]:
        return tuple(item.column for item in self.params.aggregates if item.column is not None)

    def _kept(self, columns: Sequence[Sequence[Any]], count: int) -> list[list[Any]]:
        """Returns the last rows of `count` as the state has them: the value for each aggregate."""
        values, kept = iter(columns), []
        for item in self.params.aggregates:
            last = [None] * count if item.column is None else next(values)
            kept.append([to_state(value) for value in last[-self.params.size :]])
        return [list(each) for each in zip(*kept, strict=True)]
