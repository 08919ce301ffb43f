"""Transform: choose, order and rename columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.operators.columns import ColumnName, NewColumn, SchemaCheck
from pipeline_runtime.operators.lineage import Came, TracedRow, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


class Chosen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    column: ColumnName = Field(description="a column of the input")
    as_: NewColumn | None = Field(
        default=None, alias="as", title="New name", description="its new name; empty: its name stays"
    )

    @property
    def name(self) -> str:
        return self.as_ or self.column


class SelectParams(Params):
    columns: tuple[Chosen, ...] = Field(
        min_length=1, max_length=COLUMNS_MAX, description="the columns to keep, in this order"
    )
    key: str | None = Field(
        default=None,
        max_length=120,
        description="the column (by its new name) that becomes the key; empty: the key stays, if its column"
        " does",
    )


class Select(TransformOperator):
    """Keeps the listed columns, in that order, and renames those with `as`. Drops all others.

    The stream's key stays the same if you keep its column, even under another name. Otherwise the stream has
    no key, unless `key` makes another column the key.
    """

    type = "select"
    title = "Select / rename"
    summary = "Chooses, orders and renames columns"
    category = "transform"
    icon = "columns-3"
    Params = SelectParams
    example = {"columns": [{"column": "value", "as": "power"}]}

    params: SelectParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, {item.name: item.column for item in self.params.columns})}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        fields, key = [], None
        with SchemaCheck() as check:
            for index, chosen in enumerate(self.params.columns):
                field = check.column(schema, chosen.column, f"params.columns[{index}].column")
                if field is not None:
                    fields.append(field.model_copy(update={"name": chosen.name}))
                    key = chosen.name if chosen.column == schema.key else key
            output = StreamSchema(fields=tuple(fields), key=self.params.key or key)
            check.unique([chosen.name for chosen in self.params.columns], "params.columns")
            if self.params.key is not None:
                check.column(output, self.params.key, "params.key")
        return output

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        def selected(inputs: Mapping[str, pa.Table]) -> pa.Table:
            rows = inputs["in"]
            chosen = {item.name: rows[item.column] for item in self.params.columns}
            return pa.table(chosen | {name: rows[name] for name in rows.column_names if name.startswith("_")})

        return selected
