"""Aggregate functions: their parameters and schemas, and their values over rows that are at hand. Over rows
that come batch by batch see `accumulators`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NewColumn, SchemaCheck


class Function(StrEnum):
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    FIRST = "first"
    LAST = "last"
    STDDEV = "stddev"  # of a sample (n - 1)
    RELATIVE_VARIATION = "relative_variation"  # (max - min) / average, in percent


_ANY_TYPE = (Function.MIN, Function.MAX, Function.COUNT, Function.FIRST, Function.LAST)
# Their result does not depend on the order or the grouping in which values come.
_ORDERLESS = (Function.MIN, Function.MAX, Function.COUNT, Function.FIRST, Function.LAST)
_NUMBERS: dict[str, JsonValue] = {
    "x-column": {
        "types": [type_.value for type_ in NUMERIC],
        "unless": {"function": [function.value for function in _ANY_TYPE]},
    }
}


class Aggregate(BaseModel):
    """One output column. `column` may be left out for `count`, which then counts rows."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    function: Function = Field(description="what is made of the values of the column")
    column: ColumnName | None = Field(
        default=None,
        description="a column of the input; empty: count counts rows",
        json_schema_extra=_NUMBERS,
    )
    as_: NewColumn | None = Field(
        default=None,
        alias="as",
        title="Name of the result",
        description="the name of the new column; empty: those of the column and the function together",
    )

    @model_validator(mode="after")
    def _has_column(self) -> Aggregate:
        if self.column is None and self.function is not Function.COUNT:
            raise ValueError(f"{self.function.value} needs a column")
        return self

    @property
    def name(self) -> str:
        if self.as_ is not None:
            return self.as_
        return f"{self.column}_{self.function.value}" if self.column else self.function.value


Aggregates = Annotated[
    tuple[Aggregate, ...], Field(min_length=1, max_length=100, description="the aggregates, a column each")
]


def key_fields(keys: Sequence[str], schema: StreamSchema, check: SchemaCheck) -> list[SchemaField]:
    """Returns the output columns of the parameter `keys`. Reports to `check` what does not fit."""
    found = (check.column(schema, name, f"params.keys[{index}]") for index, name in enumerate(keys))
    return [field for field in found if field is not None]


def aggregate_fields(
    aggregates: Sequence[Aggregate], schema: StreamSchema, check: SchemaCheck
) -> list[SchemaField]:
    """Returns the output columns. Reports to `check` what does not fit."""
    fields = []
    for index, aggregate in enumerate(aggregates):
        path = f"params.aggregates[{index}].column"
        source = None
        if aggregate.column is not None:
            kinds = tuple(FieldType) if aggregate.function in _ANY_TYPE else NUMERIC
            source = check.column(schema, aggregate.column, path, kinds)
            if source is None:
                continue
        fields.append(_field(aggregate, source))
    return fields


def _field(aggregate: Aggregate, source: SchemaField | None) -> SchemaField:
    type_ = source.type if source is not None else FieldType.INTEGER
    unit = source.unit if source is not None else None
    match aggregate.function:
        case Function.COUNT:
            return SchemaField(name=aggregate.name, type=FieldType.INTEGER)
        case Function.RELATIVE_VARIATION:
            return SchemaField(name=aggregate.name, type=FieldType.NUMBER, unit="%")
        case Function.AVG | Function.STDDEV:
            return SchemaField(name=aggregate.name, type=FieldType.NUMBER, unit=unit)
        case _:
            return SchemaField(name=aggregate.name, type=type_, unit=unit)


def depends_on_batches(aggregates: Sequence[Aggregate], schema: StreamSchema) -> bool:
    """Returns whether the last digits of the state depend on how the input is cut, as sums of floating-point
    numbers do."""
    for aggregate in aggregates:
        if aggregate.function in _ORDERLESS:
            continue
        source = schema.field(aggregate.column or "")
        integer = source is not None and source.type is FieldType.INTEGER
        if not (aggregate.function is Function.SUM and integer):
            return True  # averages are computed in doubles, whatever the column's type
    return False


def evaluate(function: Function, values: Sequence[Any], rows: int) -> Any:
    """Returns the aggregate of the values in their order, without nulls. `rows` is the number of rows.

    Returns None when it is too large for a number. An error would reject each row for as long as the large
    value is in its window, and a rejected row does not move the window on.
    """
    try:
        result = _evaluate(function, values, rows)
    except OverflowError:
        return None
    return None if isinstance(result, float) and not math.isfinite(result) else result


def _evaluate(function: Function, values: Sequence[Any], rows: int) -> Any:
    given = [value for value in values if value is not None]
    if function is Function.COUNT:
        return len(given) if values else rows
    if not given:
        return None
    match function:
        case Function.AVG:
            return math.fsum(given) / len(given)
        case Function.MIN:
            return min(given)
        case Function.MAX:
            return max(given)
        case Function.SUM:
            if any(isinstance(value, float) for value in given):
                return math.fsum(given)
            total = sum(given)
            return total if -(2**63) <= total < 2**63 else None
        case Function.FIRST:
            return given[0]
        case Function.LAST:
            return given[-1]
        case Function.STDDEV:
            return _stddev(given)
        case Function.RELATIVE_VARIATION:
            average = math.fsum(given) / len(given)
            return (max(given) - min(given)) / average * 100 if average else None


def _stddev(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    apart = [value - mean for value in values]
    return math.sqrt(math.fsum(each * each for each in apart) / (len(values) - 1))
