"""View: a table in the dashboard."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.sdk import Params, ViewOperator


class LiveTableParams(Params):
    columns: tuple[ColumnName, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=COLUMNS_MAX,
        description="the columns to show, in this order; empty: all",
    )
    rows: int = Field(default=50, ge=1, le=500, description="how many of the newest rows are shown")


class LiveTable(ViewOperator):
    """Shows the newest rows of a stream, live, in the dashboard. It does not run on a node."""

    type = "live-table"
    title = "Live table"
    summary = "Shows the newest rows of a stream in the dashboard"
    category = "sinks"
    icon = "table"
    Params = LiveTableParams
    example = {"rows": 50}

    params: LiveTableParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns or ()):
                check.column(schema, name, f"params.columns[{index}]")
        return schema
