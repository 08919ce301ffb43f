"""State: aggregates over windows of event time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields, spark_column
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.expressions.sparksql import quote_name
from pipeline_runtime.operators.frames import without_flush
from pipeline_runtime.operators.sdk import OperatorContext, Params, TransformOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WindowAggregateParams(Params):
    size_s: float = Field(ge=0.001, le=366 * 86400, description="length of a window")
    slide_s: float | None = Field(
        default=None, ge=0.001, description="a window begins so often; empty: one after the other"
    )
    delay_s: float = Field(default=0.0, ge=0, le=7 * 86400, description="how late a row may come")
    keys: tuple[ColumnName, ...] = Field(default=(), description="aggregate each value of these apart")
    aggregates: Aggregates

    @model_validator(mode="after")
    def _slides_within(self) -> WindowAggregateParams:
        if self.slide_s is not None and self.slide_s > self.size_s:
            raise ValueError("slide_s is longer than size_s: rows between two windows would be lost")
        return self


class WindowAggregate(TransformOperator):
    """Aggregates the rows of each window of event time, of each key if there are `keys`.

    A window is emitted once, when it is complete: when a row has come whose time is `delay_s` past the
    window's end, or the source has ended. A row that comes later than that is left out. Windows follow
    one another, or overlap when `slide_s` is shorter than `size_s`; they are aligned to full multiples of
    their length (UTC).

    Functions: avg, min, max, sum, count, first, last, stddev, and relative_variation, which is
    (max - min) / average in per cent. Output: `window_start`, `window_end`, the keys and the aggregates;
    event time is the window's end.
    """

    type = "window-aggregate"
    title = "Window aggregate"
    summary = "Average, minimum, maximum, ... per window of time"
    category = "state"
    icon = "chart-column"
    Params = WindowAggregateParams
    stateful = True
    state_params = frozenset({"size_s", "slide_s", "keys", "aggregates"})
    keeps = "the windows that are open now: what it has read for them is not counted again"
    follow = "exact"
    flushes = True
    example = {"size_s": 1, "aggregates": [{"function": "avg", "column": "value", "as": "average"}]}

    params: WindowAggregateParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        fields = [
            SchemaField(name="window_start", type=FieldType.TIMESTAMP),
            SchemaField(name="window_end", type=FieldType.TIMESTAMP),
        ]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.keys):
                field = check.column(schema, name, f"params.keys[{index}]")
                if field is not None:
                    fields.append(field)
            fields += aggregate_fields(self.params.aggregates, schema, check)
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=tuple(fields), key=self.params.keys[0] if self.params.keys else None)

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        from pyspark.sql import functions as F

        params = self.params
        size, slide = _interval(params.size_s), _interval(params.slide_s or params.size_s)
        frame = without_flush(inputs["in"].withWatermark("_time", _interval(params.delay_s)))
        window = F.window("_time", size, slide).alias("_window")
        keys = [F.col(quote_name(name)) for name in params.keys]
        frame = frame.groupBy(window, *keys).agg(*(spark_column(item) for item in params.aggregates))
        names = [*params.keys, *(item.name for item in params.aggregates)]
        return frame.selectExpr(
            "`_window`.`start` AS `window_start`",
            "`_window`.`end` AS `window_end`",
            *(quote_name(name) for name in names),
            "`_window`.`end` AS `_time`",
        )


def _interval(seconds: float) -> str:
    return f"{round(seconds * 1000)} milliseconds"
