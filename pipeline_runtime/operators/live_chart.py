"""View: a chart in the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.sdk import Params, ViewOperator


class LiveChartParams(Params):
    columns: tuple[NumericColumn, ...] = Field(min_length=1, max_length=20, description="the curves")
    kind: Literal["line", "bar", "points"] = "line"
    window_s: float = Field(default=300.0, gt=0, le=31 * 86400, description="how much time is shown")
    by: ColumnName | None = Field(default=None, description="a curve for each value of this column")
    limit: float | None = Field(default=None, description="a horizontal line, such as an alert's limit")


class LiveChart(ViewOperator):
    """Shows columns of numbers over event time, live, in the dashboard. It runs on no node."""

    type = "live-chart"
    title = "Live chart"
    summary = "Curves of a stream in the dashboard"
    category = "sinks"
    icon = "chart-line"
    Params = LiveChartParams
    example = {"columns": ["value"]}

    params: LiveChartParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns):
                check.column(schema, name, f"params.columns[{index}]", NUMERIC)
            if self.params.by is not None:
                check.column(schema, self.params.by, "params.by")
        return schema
