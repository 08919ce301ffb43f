"""State: running aggregates per key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import Follow
from pipeline_runtime.operators.aggregates import (
    Aggregates,
    aggregate_fields,
    depends_on_batches,
    spark_column,
)
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.expressions.sparksql import quote_name
from pipeline_runtime.operators.sdk import OperatorContext, Params, TransformOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeyedAggregateParams(Params):
    keys: tuple[ColumnName, ...] = Field(min_length=1, description="aggregate each value of these apart")
    aggregates: Aggregates


class KeyedAggregate(TransformOperator):
    """Keeps running aggregates of all rows so far, for each key, and emits a key's row when it changes.

    Changes that fall into one batch are emitted as one row. Output: the keys and the aggregates; event
    time is that of the key's newest row. Functions are those of the window aggregate.

    Counts, sums of integers, minima and maxima are the same however the input is cut into batches, so a
    standby may catch up in large steps; averages and sums of decimals make it follow batch by batch.
    """

    type = "keyed-aggregate"
    title = "Keyed aggregate"
    summary = "Running count, sum, average, ... per key"
    category = "state"
    icon = "sigma"
    Params = KeyedAggregateParams
    stateful = True
    keeps = "the aggregates so far: it counts from the next row on"
    output_mode = "update"
    example = {"keys": ["key"], "aggregates": [{"function": "count", "as": "events"}]}

    params: KeyedAggregateParams

    def follows(self, inputs: Mapping[str, StreamSchema]) -> Follow:
        return "exact" if depends_on_batches(self.params.aggregates, inputs["in"]) else "coalesced"

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        fields = []
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.keys):
                field = check.column(schema, name, f"params.keys[{index}]")
                if field is not None:
                    fields.append(field)
            fields += aggregate_fields(self.params.aggregates, schema, check)
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=tuple(fields), key=self.params.keys[0])

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        from pyspark.sql import functions as F

        keys = [F.col(quote_name(name)) for name in self.params.keys]
        aggregates = [spark_column(item) for item in self.params.aggregates]
        return inputs["in"].groupBy(*keys).agg(*aggregates, F.max("_time").alias("_time"))
