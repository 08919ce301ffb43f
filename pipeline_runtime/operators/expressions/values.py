"""Columns of values: the results of an expression's parts, and helpers that every part needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Values = Any
"""A pa.ChunkedArray or pa.Array with one value for each row, or a pa.Scalar that stands for every row."""


def is_typed(values: Values, type_: pa.DataType) -> bool:
    return bool(values.type == type_)


def as_type(values: Values, type_: pa.DataType) -> Values:
    """Returns the values as `type_`. Integers become the nearest numbers, and nulls without a type become
    typed nulls."""
    if values.type == type_:
        return values
    return values.cast(type_, safe=False)


def alike(*parts: Values) -> list[Values]:
    """Returns the values in the one type that they have in common. Integers beside numbers become numbers."""
    types = {part.type for part in parts} - {pa.null()}
    common = pa.float64() if pa.float64() in types else next(iter(types), pa.null())
    return [as_type(part, common) for part in parts]


def where(condition: Values, values: Values) -> Values:
    """Returns the values, and null where the condition is not true."""
    return pc.if_else(pc.fill_null(condition, False), values, pa.scalar(None, values.type))


def finite(numbers: Values) -> Values:
    """Returns the numbers, and null for NaN and for both infinities."""
    is_finite = pc.is_finite(numbers)
    return where(is_finite, numbers) if any_true(pc.invert(is_finite)) else numbers


def any_true(condition: Values) -> bool:
    return bool(condition.as_py() if isinstance(condition, pa.Scalar) else pc.any(condition).as_py())


def has_nulls(values: Values) -> bool:
    return not values.is_valid if isinstance(values, pa.Scalar) else values.null_count > 0


def each(function: Callable[..., Any], type_: pa.DataType, *columns: Values) -> Values:
    """Returns the function's result for each row, in Python, for work that Arrow cannot do. Null where an
    argument is null, or where the function returns None."""
    if all(isinstance(column, pa.Scalar) for column in columns):
        return pa.scalar(_applied(function, tuple(column.as_py() for column in columns)), type_)
    count = next(len(column) for column in columns if not isinstance(column, pa.Scalar))
    lists = [
        [column.as_py()] * count if isinstance(column, pa.Scalar) else column.to_pylist()
        for column in columns
    ]
    return pa.chunked_array([pa.array([_applied(function, row) for row in zip(*lists, strict=True)], type_)])


def _applied(function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
    return None if None in row else function(*row)


def floored(values: Values, by: int) -> Values:
    """Returns integers divided by a positive one, and rounded down, also below zero."""
    whole = pc.divide(values, by)
    below = pc.and_(pc.less(values, 0), pc.not_equal(pc.multiply(whole, by), values))
    return pc.subtract(whole, below.cast(pa.int64()))


def in_64_bits(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def whole(numbers: Values) -> Values:
    """Returns numbers without decimals as integers, or null beyond 64 bits."""
    fits = pc.and_(pc.greater_equal(numbers, float(-(2**63))), pc.less(numbers, float(2**63)))
    return where(fits, numbers).cast(pa.int64())
