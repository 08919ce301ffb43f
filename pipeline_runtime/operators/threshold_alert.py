"""Alert: values beyond a limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from pipeline_runtime.model.faults import did_you_mean, listed
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.columns import NUMERIC, NumericColumn, SchemaCheck
from pipeline_runtime.operators.expressions.calls import STRICT
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator
from pipeline_runtime.operators.severity import HOW_SERIOUS, Severity


class Comparison(StrEnum):
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "="
    UNEQUAL = "!="


ALERT_FIELDS = (
    SchemaField(name="alert_column", type=FieldType.STRING),
    SchemaField(name="alert_value", type=FieldType.NUMBER),
    SchemaField(name="alert_limit", type=FieldType.NUMBER),
    SchemaField(name="alert_severity", type=FieldType.STRING),
    SchemaField(name="alert_message", type=FieldType.STRING),
)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_RANK = "_rank"
_OWN = ("column", "value", "limit", "operator")
_IN_ARROW = {
    Comparison.ABOVE: pc.greater,
    Comparison.AT_LEAST: pc.greater_equal,
    Comparison.BELOW: pc.less,
    Comparison.AT_MOST: pc.less_equal,
    Comparison.EQUAL: pc.equal,
    Comparison.UNEQUAL: pc.not_equal,
}


class ThresholdAlertParams(Params):
    columns: tuple[NumericColumn, ...] = Field(
        min_length=1, max_length=50, description="the columns to watch"
    )
    operator: Comparison = Field(
        default=Comparison.ABOVE,
        title="A value alerts when it is",
        description="how a value compares with the limit if it is beyond it",
    )
    limit: float = Field(description="the limit, in the unit of the columns")
    severity: Severity = Field(default=Severity.WARNING, description=HOW_SERIOUS)
    message: str = Field(
        default="{column} is {value} ({operator} {limit})",
        min_length=1,
        max_length=500,
        description="may contain {column}, {value}, {limit}, {operator} or {the name of an input column}",
    )

    @field_validator("message")
    @classmethod
    def _braces_close(cls, value: str) -> str:
        if re.search(r"[{}]", _PLACEHOLDER.sub("", value)):
            raise ValueError("a brace is not closed; write a placeholder as {name}")
        return value


class ThresholdAlert(TransformOperator):
    """Emits an alert for each value that is beyond a limit.

    The element compares each listed column with `limit` in each row. Each value beyond the limit gives an
    output row, which has the input's columns and `alert_column`, `alert_value`, `alert_limit`,
    `alert_severity` and `alert_message`. The message rounds numbers that are no integers to two decimals.
    Null is never beyond a limit. Every row counts: a value that stays beyond its limit gives an alert with
    each row. To get fewer alerts, aggregate over a window first.
    """

    type = "threshold-alert"
    title = "Threshold alert"
    summary = "Emits an alert when a value is beyond a limit"
    category = "alert"
    icon = "bell-ring"
    Params = ThresholdAlertParams
    example = {"columns": ["variation"], "operator": ">", "limit": 30}

    params: ThresholdAlertParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns):
                check.column(schema, name, f"params.columns[{index}]", NUMERIC)
            for name in _PLACEHOLDER.findall(self.params.message):
                if name not in _OWN and schema.field(name) is None:
                    known = (*_OWN, *schema.names)
                    message = (
                        f"the message has {{{name}}}{did_you_mean(name, known)} (there are: {listed(known)})"
                    )
                    check.fail("params.message", message)
            fields = (*schema.fields, *ALERT_FIELDS)
            check.unique([field.name for field in fields], "inputs.in")
        return StreamSchema(fields=fields, key=schema.key)

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        beyond = _IN_ARROW[self.params.operator]

        def alerts(inputs: Mapping[str, pa.Table]) -> pa.Table:
            rows = inputs["in"]
            found = []
            for place, name in enumerate(self.params.columns):
                values = rows[name].cast(pa.float64(), safe=False)
                is_beyond = pc.fill_null(beyond(values, self.params.limit), False)
                given = rows.filter(is_beyond)
                own = (
                    pa.repeat(name, given.num_rows),
                    values.filter(is_beyond),
                    pa.repeat(pa.scalar(self.params.limit, pa.float64()), given.num_rows),
                    pa.repeat(self.params.severity.value, given.num_rows),
                    self._messages(name, given),
                )
                for field, column in zip(ALERT_FIELDS, own, strict=True):
                    given = given.append_column(field.name, column)
                ranks = pc.add(pc.multiply(pc.indices_nonzero(is_beyond), len(self.params.columns)), place)
                found.append(given.append_column(_RANK, ranks))
            # Row by row, and in each row the columns in their listed order.
            return pa.concat_tables(found).sort_by(_RANK).drop_columns([_RANK])

        return alerts

    def _messages(self, column: str, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Returns the message about one watched column for each row. A null in it reads as "null"."""
        own = {"column": column, "limit": f"{self.params.limit:g}", "operator": self.params.operator.value}
        parts = []
        for index, part in enumerate(_PLACEHOLDER.split(self.params.message)):
            if index % 2 == 0 or part in own:
                parts.append(pa.repeat(own.get(part, part) if index % 2 else part, rows.num_rows))
            else:
                parts.append(_shown(rows[column if part == "value" else part]))
        return pc.binary_join_element_wise(*parts, "")


def _shown(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        values = STRICT["round"](values, pa.scalar(2))
    return pc.fill_null(texts(values), "null")
