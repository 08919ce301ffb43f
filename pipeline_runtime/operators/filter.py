"""Transform: keep the rows that a condition is true for."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators import tables
from pipeline_runtime.operators.columns import ConditionText, SchemaCheck
from pipeline_runtime.operators.expressions import compile_expression
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator

_NO_VALUE = "the condition cannot be computed for this row"


class FilterParams(Params):
    condition: ConditionText = Field(description="for example: power > 100 and state = 'on'")


class Filter(TransformOperator):
    """Keeps the rows for which the condition is true. Drops a row for which it is false or null.

    The condition is an expression over the input's columns (see "Expressions"). If the element cannot compute
    it for a row (a division by zero, a text that is not a number), the row goes to the dead letters.
    """

    type = "filter"
    title = "Filter"
    summary = "Keeps the rows for which a condition is true"
    category = "transform"
    icon = "filter"
    Params = FilterParams
    example = {"condition": "value > 10"}

    params: FilterParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        with SchemaCheck() as check:
            check.expression(inputs["in"], self.params.condition, "params.condition", FieldType.BOOLEAN)
        return inputs["in"]

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        compiled = compile_expression(self.params.condition, ctx.input_schemas["in"])

        def kept(inputs: Mapping[str, pa.Table]) -> pa.Table:
            found = tables.evaluated(compiled, inputs["in"])
            rows = tables.rejecting(inputs["in"], found.failed, _NO_VALUE)
            wanted = pc.fill_null(found.values, False)
            return rows.filter(pc.or_(wanted, tables.is_rejected(rows)))

        return kept
