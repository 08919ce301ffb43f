"""State: running aggregates per key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field

from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.model.spec import Follow
from pipeline_runtime.operators.accumulators import (
    Accumulation,
    Group,
    Kept,
    Kind,
    Part,
    column_of,
    readable,
)
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields, depends_on_batches, key_fields
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, equal
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, Params, States

NEWEST = Part(Kind.MAX, "_time")


class KeyedAggregateParams(Params):
    keys: tuple[ColumnName, ...] = Field(
        min_length=1,
        max_length=COLUMNS_MAX,
        title="For each",
        description="the rows of each value of these columns are aggregated separately",
        json_schema_extra={"x-item": "column"},
    )
    aggregates: Aggregates


class KeyedAggregate(BatchProcessor):
    """Keeps running aggregates of all rows so far for each key, and emits them when rows of the key come.

    In each batch, a key gives one output row for all its rows. The functions are those of the window
    aggregate.

    Output: the keys and the aggregates. The event time is that of the key's newest row.

    Counts, sums of integers, minima, maxima, first and last values do not depend on how the input is cut into
    batches, so a standby may catch up in large steps. With any other aggregate it follows batch by batch.
    """

    type = "keyed-aggregate"
    title = "Keyed aggregate"
    summary = "Keeps a running count, sum, average, ... for each key"
    category = "state"
    icon = "sigma"
    Params = KeyedAggregateParams
    other_columns = "more"
    keeps = "the aggregates so far: it starts again with the next row"
    output_mode = "update"
    example = {"keys": ["key"], "aggregates": [{"function": "count", "as": "events"}]}

    params: KeyedAggregateParams

    def follows(self, inputs: Mapping[str, StreamSchema]) -> Follow:
        return "exact" if depends_on_batches(self.params.aggregates, inputs["in"]) else "coalesced"

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        is_mine = equal(made, self.params.keys)

        def chosen(rows: Sequence[TracedRow]) -> Found:
            own = [row for row in rows if is_mine(row)]
            places = [place for place, row in enumerate(own) if row.time_ms == made.time_ms]
            if not places:
                return Found(())
            newer = next((row for row in own[places[-1] + 1 :]), None)
            is_late = newer is not None and newer.time_ms < made.time_ms
            return Found(own[: places[-1] + 1], _SAME_BATCH if len(places) > 1 or is_late else "")

        return {"in": Came(None, made.time_ms, chosen)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            fields = key_fields(self.params.keys, schema, check)
            fields += aggregate_fields(self.params.aggregates, schema, check)
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=tuple(fields), key=self.params.keys[0])

    def accumulation(self, schema: StreamSchema) -> Accumulation:
        """Returns the accumulation for rows of that schema."""
        return Accumulation(self.params.aggregates, schema, NEWEST)

    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        accumulation = self.accumulation(ctx.input_schemas["in"])
        rows = inputs["in"]
        found = accumulation.of(rows, self.params.keys)
        groups = found.tuples()
        names = [state_key(group) for group in groups]
        kept = accumulation.merged(accumulation.of_states(states.get(names)), found.kept)
        for name, state in zip(names, accumulation.states(kept), strict=True):
            states.put(name, state)
        columns = {
            name: column_of([group[place] for group in groups], name, ctx.output_schema)
            for place, name in enumerate(self.params.keys)
        }
        columns |= accumulation.results(kept, ctx.output_schema)
        given, times_us = accumulation.arrays(NEWEST, kept)
        times = pa.array(times_us, mask=~given).cast(pa.timestamp("us", "UTC"))
        made = pa.table({**columns, "_time": times})
        return made.sort_by("_time")

    def readable_key(self, key: str) -> str:
        return readable(json.loads(key))

    def readable_state(self, state: Kept, inputs: Mapping[str, StreamSchema]) -> dict[str, Any]:
        return self.accumulation(inputs["in"]).readable(state, self.output_schema(inputs))


_SAME_BATCH = "Rows that came right behind these may have counted, too: those of one batch give one row."


def state_key(group: Group) -> str:
    """Returns the state's key from the values of the row's keys."""
    return json.dumps(group, ensure_ascii=False)
