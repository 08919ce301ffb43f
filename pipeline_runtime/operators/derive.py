"""Transform: new columns from expressions."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.operators import tables
from pipeline_runtime.operators.columns import UNIT, ExpressionText, NewColumn, SchemaCheck
from pipeline_runtime.operators.expressions import Compiled, compile_expression
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


class Derived(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: NewColumn = Field(description="the name of the column")
    expression: ExpressionText = Field(description="how it is computed, such as power / 1000")
    unit: str | None = Field(default=None, max_length=40, description=UNIT)


class DeriveParams(Params):
    columns: tuple[Derived, ...] = Field(
        min_length=1, max_length=100, description="the columns to add, in this order"
    )


class Derive(TransformOperator):
    """Adds columns that are computed from others, in the listed order. A later column may use an earlier one.

    A column with a name that exists already replaces the old one. "Expressions" says what an expression makes
    of a null. If the element cannot compute an expression for a row (a division by zero, an overflow, a text
    that is not a number), the row goes to the dead letters with the column's name.
    """

    type = "derive"
    title = "Derive"
    summary = "Adds columns that are computed from others"
    category = "transform"
    icon = "calculator"
    Params = DeriveParams
    example = {"columns": [{"name": "total", "expression": "a + b"}]}

    params: DeriveParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        replaced = {column.name for column in self.params.columns}
        kept = [name for name in inputs["in"].names if name not in replaced]
        return {"in": same_row(made, named(kept))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, column in enumerate(self.params.columns):
                compiled = check.expression(schema, column.expression, f"params.columns[{index}].expression")
                if compiled is not None:
                    field = SchemaField(name=column.name, type=compiled.type, unit=column.unit)
                    schema = _with_field(schema, field)
            check.unique(schema.names, "params.columns")
        return schema

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        columns = self._compiled(ctx)

        def derived(inputs: Mapping[str, pa.Table]) -> pa.Table:
            rows = inputs["in"]
            for name, compiled in columns:
                found = tables.evaluated(compiled, rows)
                rows = tables.rejecting(rows, found.failed, _no_value(name))
                rows = tables.with_column(rows, name, found.values)
            return rows

        return derived

    def _compiled(self, ctx: OperatorContext) -> list[tuple[str, Compiled]]:
        found, schema = [], ctx.input_schemas["in"]
        for column in self.params.columns:
            compiled = compile_expression(column.expression, schema)
            found.append((column.name, compiled))
            schema = _with_field(schema, SchemaField(name=column.name, type=compiled.type))
        return found


def _no_value(name: str) -> str:
    return f'column "{name}" has no value for this row'


def _with_field(schema: StreamSchema, field: SchemaField) -> StreamSchema:
    others = tuple(other for other in schema.fields if other.name != field.name)
    return StreamSchema(fields=(*others, field), key=schema.key)
