"""Join: two streams on a key within a time bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, SchemaCheck
from pipeline_runtime.operators.expressions.sparksql import quote_name
from pipeline_runtime.operators.sdk import OperatorContext, Params, Port, TransformOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_PREFIX = words_for_pattern(r"^[^_`.\x00-\x1f]", "it does not begin with an underscore, a dot or a backquote")


class JoinParams(Params):
    left_key: ColumnName
    right_key: ColumnName
    within_s: float = Field(ge=0, le=7 * 86400, description="largest difference of the two event times")
    delay_s: float = Field(default=0.0, ge=0, le=7 * 86400, description="how late a row may come")
    right_prefix: str = Field(default="right_", min_length=1, max_length=40, pattern=_PREFIX)


class Join(TransformOperator):
    """Pairs each row of `left` with each row of `right` that has the same key and an event time at most
    `within_s` apart. A pair is emitted as soon as both rows are there; a row without a partner is dropped
    once none can come any more. Rows whose key is null pair with nothing.

    Rows are kept until the other stream's time is `within_s` + `delay_s` past them, so a stream that stops
    makes the other one's rows wait.

    Output: the left columns, then the right ones without the right key; a right column whose name is taken
    gets `right_prefix`. Event time is the later one of the two.
    """

    type = "join"
    title = "Join"
    summary = "Pairs rows of two streams by key within a time"
    category = "join"
    icon = "merge"
    Params = JoinParams
    inputs = (Port("left"), Port("right"))
    stateful = True
    keeps = "the rows that wait for their partner: they are not paired any more"
    follow = "exact"
    example = {"left_key": "key", "right_key": "key", "within_s": 5}

    params: JoinParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        left, right = inputs["left"], inputs["right"]
        with SchemaCheck() as check:
            a = check.column(left, self.params.left_key, "params.left_key")
            b = check.column(right, self.params.right_key, "params.right_key")
            if a and b and a.type != b.type and not (a.type in NUMERIC and b.type in NUMERIC):
                message = f'"{b.name}" is {b.type.words}, but the left key "{a.name}" is {a.type.words}'
                check.fail("params.right_key", message)
            fields = (*left.fields, *(field for _, field in self._right_fields(left, right)))
            check.unique([field.name for field in fields], "params.right_prefix")
        return StreamSchema(fields=fields, key=self.params.left_key)

    def _right_fields(self, left: StreamSchema, right: StreamSchema) -> list[tuple[str, SchemaField]]:
        """(name in the right stream, output field) of each right column that is kept."""
        taken = {name.lower() for name in left.names}
        found = []
        for field in right.fields:
            if field.name != self.params.right_key:
                clash = field.name.lower() in taken
                name = f"{self.params.right_prefix}{field.name}" if clash else field.name
                found.append((field.name, field.model_copy(update={"name": name})))
        return found

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        from pyspark.sql import functions as F

        params, left_schema = self.params, ctx.input_schemas["left"]
        right_fields = self._right_fields(left_schema, ctx.input_schemas["right"])
        delay = f"{round(params.delay_s * 1000)} milliseconds"
        left = (
            inputs["left"]
            .withWatermark("_time", delay)
            .selectExpr(*(quote_name(name) for name in left_schema.names), "`_time` AS `_left_time`")
        )
        right = (
            inputs["right"]
            .withWatermark("_time", delay)
            .selectExpr(
                f"{quote_name(params.right_key)} AS `_right_key`",
                *(f"{quote_name(name)} AS {quote_name(field.name)}" for name, field in right_fields),
                "`_time` AS `_right_time`",
            )
        )
        within = f"INTERVAL {round(params.within_s * 1000)} MILLISECONDS"
        condition = F.expr(
            f"{quote_name(params.left_key)} = `_right_key`"
            f" AND `_right_time` >= `_left_time` - {within} AND `_right_time` <= `_left_time` + {within}"
        )
        names = [*left_schema.names, *(field.name for _, field in right_fields)]
        return left.join(right, condition, "inner").selectExpr(
            *(quote_name(name) for name in names), "greatest(`_left_time`, `_right_time`) AS `_time`"
        )
