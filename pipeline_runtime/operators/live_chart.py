"""View: a chart in the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, FlagColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.sdk import Params, ViewOperator


class LiveChartParams(Params):
    columns: tuple[NumericColumn, ...] = Field(
        min_length=1, max_length=20, description="the columns to draw as curves"
    )
    kind: Literal["line", "bar", "points"] = Field(default="line", description="how values are drawn")
    window_s: float = Field(
        default=300.0,
        gt=0,
        le=31 * 86400,
        title="Time shown, in seconds",
        description="how much event time is shown",
    )
    by: ColumnName | None = Field(
        default=None,
        title="A curve for each",
        description="draw a curve for each value of this column; empty: one for all rows",
    )
    marks: tuple[FlagColumn, ...] = Field(
        default=(),
        max_length=5,
        description="columns of true and false: a row where one is true gets a mark",
    )
    limit: float | None = Field(default=None, description="draw a horizontal line here; empty: none")
    limit_of: str | None = Field(
        default=None,
        min_length=1,
        max_length=60,
        title="Limit of the alarm",
        description="the alarm whose limit is drawn as a line, also when it is changed later; empty: none",
        json_schema_extra={"format": "alarm"},
    )

    @model_validator(mode="after")
    def _one_limit(self) -> LiveChartParams:
        if self.limit is not None and self.limit_of is not None:
            raise ValueError("limit is a number, or that of an alarm (limit_of): leave one of the two empty")
        return self


class LiveChart(ViewOperator):
    """Shows columns of numbers over event time, live, in the dashboard. It does not run on a node.

    `marks` are columns of true and false. Each row in which such a column is true has a mark at the top of
    the chart, and a line goes down from the first mark of a series. There can be five such columns, the most
    serious one first, which is red. A click on a name above the chart hides its curve or its marks.
    """

    type = "live-chart"
    title = "Live chart"
    summary = "Shows a stream as curves in the dashboard"
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
            for index, name in enumerate(self.params.marks):
                check.column(schema, name, f"params.marks[{index}]", (FieldType.BOOLEAN,))
            if self.params.by is not None:
                check.column(schema, self.params.by, "params.by")
        return schema
