"""Alert: values beyond a limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from pipeline_runtime.model.faults import did_you_mean, listed
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.columns import NUMERIC, NumericColumn, SchemaCheck
from pipeline_runtime.operators.expressions.javatexts import rounded, text_of
from pipeline_runtime.operators.expressions.sparksql import quote_name, quote_text
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Comparison(StrEnum):
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "="
    UNEQUAL = "!="


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


ALERT_FIELDS = (
    SchemaField(name="alert_column", type=FieldType.STRING),
    SchemaField(name="alert_value", type=FieldType.NUMBER),
    SchemaField(name="alert_limit", type=FieldType.NUMBER),
    SchemaField(name="alert_severity", type=FieldType.STRING),
    SchemaField(name="alert_message", type=FieldType.STRING),
)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
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
    operator: Comparison = Comparison.ABOVE
    limit: float
    severity: Severity = Severity.WARNING
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

    Each listed column is compared with `limit` in each row. Each value beyond it gives an output row, which
    has the input's columns and `alert_column`, `alert_value`, `alert_limit`, `alert_severity` and
    `alert_message`. Null is never beyond a limit. Every row counts: a value that stays beyond its limit gives
    an alert with each row. To get fewer alerts, aggregate over a window first.
    """

    type = "threshold-alert"
    title = "Threshold alert"
    summary = "Emits an alert when a value is beyond a limit"
    category = "alert"
    icon = "bell-ring"
    Params = ThresholdAlertParams
    example = {"columns": ["variation"], "operator": ">", "limit": 30}

    params: ThresholdAlertParams

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

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        frame = inputs["in"]
        schema = ctx.input_schemas["in"]
        limit = f"cast({self.params.limit!r} as double)"
        severity = quote_text(self.params.severity.value)
        alerts = []
        for name in self.params.columns:
            value = f"cast({quote_name(name)} as double)"
            alert = (
                f"named_struct('column', {quote_text(name)}, 'value', {value}, 'limit', {limit},"
                f" 'severity', {severity}, 'message', {self._message(name, schema)})"
            )
            alerts.append(f"CASE WHEN {value} {self.params.operator.value} {limit} THEN {alert} END")
        own = [quote_name(name) for name in frame.columns]
        exploded = frame.selectExpr(*own, f"explode(array({', '.join(alerts)})) AS `_alert`")
        return exploded.where("`_alert` IS NOT NULL").selectExpr(
            *own,
            *(f"`_alert`.`{field.name.removeprefix('alert_')}` AS `{field.name}`" for field in ALERT_FIELDS),
        )

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        schema = ctx.input_schemas["in"]

        def alerts(inputs: Mapping[str, pa.Table]) -> pa.Table:
            rows, beyond = inputs["in"], _IN_ARROW[self.params.operator]
            places: list[tuple[int, int]] = []  # of the row, and of the column in it
            for place, name in enumerate(self.params.columns):
                values = rows[name].cast(pa.float64(), safe=False)
                found = pc.indices_nonzero(pc.fill_null(beyond(values, self.params.limit), False))
                places += [(row, place) for row in found.to_pylist()]
            places.sort()
            taken = rows.take(pa.array([row for row, _ in places], pa.int64()))
            columns = [self.params.columns[place] for _, place in places]
            told = taken.to_pylist()
            given = [float(row[column]) for row, column in zip(told, columns, strict=True)]
            messages = [self._said(column, row, schema) for row, column in zip(told, columns, strict=True)]
            count = len(places)
            own: list[pa.Array] = [
                pa.array(columns, pa.string()),
                pa.array(given, pa.float64()),
                pa.repeat(pa.scalar(self.params.limit, pa.float64()), count),
                pa.repeat(self.params.severity.value, count),
                pa.array(messages, pa.string()),
            ]
            for field, values in zip(ALERT_FIELDS, own, strict=True):
                taken = taken.append_column(field.name, values)
            return taken

        return alerts

    def _said(self, column: str, row: Mapping[str, Any], schema: StreamSchema) -> str:
        """The message for one watched column; a null in it reads as "null"."""
        own = {"column": column, "limit": f"{self.params.limit:g}", "operator": self.params.operator.value}

        def shown(found: re.Match[str]) -> str:
            name = found[1]
            if name in own:
                return own[name]
            field = schema.field(column if name == "value" else name)
            assert field is not None, name
            value = row[field.name]
            return text_of(
                rounded(value, 2) if field.type is FieldType.NUMBER and value is not None else value
            )

        return _PLACEHOLDER.sub(shown, self.params.message)

    def _message(self, column: str, schema: StreamSchema) -> str:
        """SQL of the message for one watched column; a null in it reads as "null"."""
        parts = []
        for index, part in enumerate(_PLACEHOLDER.split(self.params.message)):
            if index % 2 == 0:
                parts.append(quote_text(part))
            elif part == "column":
                parts.append(quote_text(column))
            elif part == "limit":
                parts.append(quote_text(f"{self.params.limit:g}"))
            elif part == "operator":
                parts.append(quote_text(self.params.operator.value))
            else:
                parts.append(_shown(column if part == "value" else part, schema))
        return f"concat({', '.join(parts)})"


def _shown(name: str, schema: StreamSchema) -> str:
    field = schema.field(name)
    sql = quote_name(name)
    if field is not None and field.type is FieldType.NUMBER:
        sql = f"round({sql}, 2)"
    return f"coalesce(cast({sql} as string), 'null')"
