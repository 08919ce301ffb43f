"""State: aggregates over the last n events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields, evaluate
from pipeline_runtime.operators.by_key import ByKey, from_state, to_state
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.sdk import Params, Timers


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


class CountWindowAggregate(ByKey):
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
    example = {"size": 10, "aggregates": [{"function": "avg", "column": "value", "as": "average"}]}

    params: CountWindowAggregateParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            fields = (*self.key_of(schema, check), *aggregate_fields(self.params.aggregates, schema, check))
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        params = self.params
        seen = state["seen"] = state.get("seen", 0) + 1
        window = state.setdefault("window", [])
        window.append([to_state(row[item.column]) if item.column else None for item in params.aggregates])
        del window[: -params.size]
        if seen % params.every or (len(window) < params.size and not params.partial):
            return
        output = self.keyed(row)
        for index, item in enumerate(params.aggregates):
            values = [from_state(values[index]) for values in window] if item.column is not None else []
            output[item.name] = evaluate(item.function, values, len(window))
        yield output
