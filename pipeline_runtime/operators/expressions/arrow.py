"""Tree to Arrow columns, for expressions of which Arrow makes what Spark makes.

Such are numbers, comparisons, conditions, and of texts and times what both do alike. What rests on Java's own
texts, patterns or functions of real numbers is left to Spark: `can_evaluate` says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from math import fmod, isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions import texts
from pipeline_runtime.operators.expressions.javatexts import rounded
from pipeline_runtime.operators.expressions.syntax import (
    Binary,
    Call,
    Case,
    Cast,
    Column,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    children,
)
from pipeline_runtime.operators.expressions.types import NUMERIC, type_of
from pipeline_runtime.operators.recording import arrow_type

Values = Any
"""A pa.ChunkedArray of one value for each row, or a pa.Scalar."""
Types = Mapping[str, FieldType]

_COMPARISONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_DATE_PARTS: dict[str, Callable[[Values], Values]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "weekday": pc.day_of_week,
    "unix_millis": lambda times: floored(times.cast(pa.int64()), 1000),
}
_PARTS_OF_TEXTS = {"startswith": pc.starts_with, "endswith": pc.ends_with, "contains": pc.match_substring}
FUNCTIONS = frozenset(
    [
        *("abs", "sqrt", "floor", "ceil", "round", "length", "concat"),
        *("greatest", "least", "coalesce", "nullif", "if"),
        *_DATE_PARTS,
        *_PARTS_OF_TEXTS,
    ]
)
# What both make alike of which type.
_CASTS = {
    FieldType.INTEGER: (FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN),
    FieldType.NUMBER: (FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN),
    FieldType.BOOLEAN: (FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN),
    FieldType.STRING: (FieldType.INTEGER, FieldType.STRING, FieldType.BOOLEAN),
    FieldType.TIMESTAMP: (FieldType.TIMESTAMP,),
}


def can_evaluate(node: Node, types: Types) -> bool:
    """Whether Arrow makes of it what Spark does."""
    match node:
        case Like():
            return False
        case Cast(operand, target):
            found = type_of(operand, types)
            if found is not None and found not in _CASTS[target]:
                return False
        case Call(name, arguments):
            if name not in FUNCTIONS or (name in _PARTS_OF_TEXTS and not _is_text(arguments[1])):
                return False
    return all(can_evaluate(child, types) for child in children(node))


def _is_text(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


class Evaluation:
    """Expressions over the rows of one table, each part computed once."""

    def __init__(self, rows: pa.Table, types: Types) -> None:
        self._rows = rows
        self._types = types
        self._known: dict[Node, Values] = {}

    def column(self, node: Node, type_: FieldType) -> pa.ChunkedArray:
        """Its value for each row; null where it has none. The node must be one that `can_evaluate`."""
        values = _as(self._value(node), type_)
        if isinstance(values, pa.Scalar):
            values = pa.repeat(values, self._rows.num_rows)
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])

    def _value(self, node: Node) -> Values:
        # Equal nodes may be of different types: 1 is true, for Python.
        known = self._known.get(node) if not isinstance(node, Literal) else None
        if known is None:
            known = self._made(node)
            if not isinstance(node, Literal):
                self._known[node] = known
        return known

    def _made(self, node: Node) -> Values:
        match node:
            case Literal(value):
                type_ = self._type(node)
                return pa.scalar(value, pa.null() if type_ is None else arrow_type(type_))
            case Column(name):
                return self._rows[name]
            case Negative(operand):
                return _computed("-", pa.scalar(0), self._value(operand))
            case Not(operand):
                return pc.invert(self._as(operand, FieldType.BOOLEAN))
            case Binary("and" | "or" as name, left, right):
                kleene = pc.and_kleene if name == "and" else pc.or_kleene
                return kleene(self._as(left, FieldType.BOOLEAN), self._as(right, FieldType.BOOLEAN))
            case Binary("||", _, _):
                return self._joined(texts.joined(node))
            case Binary(name, left, right) if name in _COMPARISONS:
                return _compared(name, *self._alike(left, right))
            case Binary(name, left, right):
                return _computed(name, *(self._number(each) for each in (left, right)))
            case Cast(operand, target):
                return _cast(self._value(operand), target)
            case Case(branches, otherwise):
                return self._chosen(node, branches, otherwise)
            case IsNull(operand):
                return pc.is_null(self._value(operand))
            case In(operand, items):
                pairs = (self._alike(operand, item) for item in items)
                return reduce(pc.or_kleene, (_compared("=", *pair) for pair in pairs))
            case Call(name, arguments):
                return self._called(node, name, arguments)
        raise NotImplementedError(f"{node} is Spark's to evaluate")

    def _type(self, node: Node) -> FieldType | None:
        return type_of(node, self._types)

    def _as(self, node: Node, type_: FieldType | None) -> Values:
        return _as(self._value(node), type_)

    def _number(self, node: Node) -> Values:
        return self._as(node, self._type(node) or FieldType.INTEGER)

    def _alike(self, *nodes: Node) -> list[Values]:
        """Their values, of the type that they have in common."""
        found = {self._type(node) for node in nodes} - {None}
        common = FieldType.NUMBER if found == set(NUMERIC) else next(iter(found), None)
        return [self._as(node, common) for node in nodes]

    def _chosen(self, node: Node, branches: tuple[tuple[Node, Node], ...], otherwise: Node) -> Values:
        type_ = self._type(node)
        chosen = self._as(otherwise, type_)
        for condition, value in reversed(branches):
            taken = pc.fill_null(self._as(condition, FieldType.BOOLEAN), False)
            chosen = pc.if_else(taken, self._as(value, type_), chosen)
        return chosen

    def _joined(self, arguments: tuple[Node, ...]) -> Values:
        """Null where it would be longer than texts.TEXT_MAX."""
        parts = [self._as(each, FieldType.STRING) for each in arguments]
        length = reduce(pc.add, (pc.utf8_length(part) for part in parts)).cast(pa.int64())
        joined = pc.binary_join_element_wise(*parts, "", null_handling="emit_null")
        return _where(pc.less_equal(length, texts.TEXT_MAX), joined)

    def _called(self, node: Node, name: str, arguments: tuple[Node, ...]) -> Values:
        match name:
            case "concat":
                return self._joined(arguments)
            case "if":
                condition, value, otherwise = arguments
                return self._chosen(node, ((condition, value),), otherwise)
            case "coalesce":
                return pc.coalesce(*self._alike(*arguments))
            case "nullif":
                value, other = self._alike(*arguments)
                return _where(pc.invert(pc.fill_null(_compared("=", value, other), False)), value)
            case "greatest" | "least":
                wins = ">" if name == "greatest" else "<"
                return reduce(lambda best, each: _better(wins, best, each), self._alike(*arguments))
            case "round":
                digits = self._value(arguments[1]) if len(arguments) > 1 else pa.scalar(0)
                return _each(_round, self._as(arguments[0], FieldType.NUMBER), digits)
        values = self._as(arguments[0], self._type(arguments[0]) or _ONLY_TYPES.get(name, FieldType.NUMBER))
        if name in _DATE_PARTS:
            return _DATE_PARTS[name](values).cast(pa.int64())
        if name in _PARTS_OF_TEXTS:
            assert isinstance(arguments[1], Literal)
            return _PARTS_OF_TEXTS[name](values, arguments[1].value)
        return _NUMERIC[name](values)


_ONLY_TYPES = {
    "length": FieldType.STRING,
    **dict.fromkeys(_PARTS_OF_TEXTS, FieldType.STRING),
    **dict.fromkeys(_DATE_PARTS, FieldType.TIMESTAMP),
}
"""Of the argument, where that is null in all rows."""


def _as(values: Values, type_: FieldType | None) -> Values:
    """Integers as numbers, and nulls as whatever; other types are there already."""
    wanted = pa.null() if type_ is None else arrow_type(type_)
    if values.type == wanted:
        return values
    if pa.types.is_integer(values.type) and wanted == pa.float64():
        return values.cast(wanted, safe=False)  # as near as doubles come
    return values.cast(wanted)


def _where(condition: Values, values: Values) -> Values:
    """The values, null where the condition is not true."""
    return pc.if_else(pc.fill_null(condition, False), values, pa.scalar(None, values.type))


def _computed(name: str, left: Values, right: Values) -> Values:
    """Null where there is no result: for a divisor of 0, and beyond the integers of 64 bits."""
    if name == "/" or pa.float64() in (left.type, right.type):
        left, right = _as(left, FieldType.NUMBER), _as(right, FieldType.NUMBER)
    if name in ("/", "%"):
        right = _where(pc.not_equal(right, 0), right)
        return pc.divide(left, right) if name == "/" else _each(_remainder, left, right)
    if left.type == pa.float64():
        return _ARITHMETIC[name](left, right)
    try:
        return _CHECKED[name](left, right)
    except pa.ArrowInvalid:  # in some row it is beyond them
        return _each(lambda a, b: _in_64_bits(_PYTHON[name](a, b)), left, right)


def _each(function: Callable[[Any, Any], Any], left: Values, right: Values) -> Values:
    """Row by row: for what is seldom, or what Arrow does not have."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        pairs = [(left.as_py(), right.as_py())]
    else:
        count = len(right) if isinstance(left, pa.Scalar) else len(left)
        sides = [[s.as_py()] * count if isinstance(s, pa.Scalar) else s.to_pylist() for s in (left, right)]
        pairs = list(zip(*sides, strict=True))
    made = [None if a is None or b is None else function(a, b) for a, b in pairs]
    is_scalar = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    return pa.scalar(made[0], left.type) if is_scalar else pa.chunked_array([pa.array(made, left.type)])


def _round(value: float, digits: int) -> float:
    return rounded(value, digits) if isfinite(value) else value


def _remainder(left: float, right: float) -> float:
    """With the sign of the dividend, as in Java."""
    if isinstance(left, int):
        size = abs(left) % abs(right)
        return -size if left < 0 else size
    return fmod(left, right) if isfinite(left) else float("nan")


def _in_64_bits(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def _compared(name: str, left: Values, right: Values) -> Values:
    """As Spark orders: NaN is equal to itself, and larger than all other numbers."""
    if pa.types.is_boolean(left.type):
        left, right = left.cast(pa.int8()), right.cast(pa.int8())
    found = _COMPARISONS[name](left, right)
    if left.type != pa.float64():
        return found
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    strange = pc.or_(left_nan, right_nan)
    if not _any(strange):
        return found
    ranks = _COMPARISONS[name](left_nan.cast(pa.int8()), right_nan.cast(pa.int8()))
    return pc.if_else(strange, ranks, found)


def _any(values: Values) -> bool:
    return bool(values.as_py() if isinstance(values, pa.Scalar) else pc.any(values).as_py())


def _better(wins: str, best: Values, each: Values) -> Values:
    """Nulls do not count."""
    return pc.if_else(pc.fill_null(_compared(wins, each, best), pc.is_null(best)), each, best)


def _cast(values: Values, target: FieldType) -> Values:
    wanted = arrow_type(target)
    if values.type == pa.null():
        return values.cast(wanted)
    if target is FieldType.INTEGER and values.type == pa.float64():
        return _whole(pc.trunc(values))
    if target is FieldType.BOOLEAN and values.type != pa.bool_():
        return pc.not_equal(values, 0)
    return _as(values, target)


def _whole(values: Values) -> Values:
    """Doubles without decimals; null beyond the integers of 64 bits. The largest of those is one more as a
    double, which becomes it again."""
    fits = pc.and_(pc.greater_equal(values, float(-(2**63))), pc.less(values, float(2**63)))
    largest = pc.fill_null(pc.equal(values, float(2**63)), False)
    return pc.if_else(largest, 2**63 - 1, _where(fits, values).cast(pa.int64()))


def _rounded(function: Callable[[Values], Values]) -> Callable[[Values], Values]:
    def whole(values: Values) -> Values:
        values = _as(values, FieldType.NUMBER)
        return _whole(_where(pc.less(pc.abs(values), 9.2e18), function(values)))

    return whole


def _size(values: Values) -> Values:
    return pc.if_else(pc.less(values, 0), _computed("-", pa.scalar(0), values), values)


def _root(values: Values) -> Values:
    root = pc.sqrt(_as(values, FieldType.NUMBER))
    return _where(pc.invert(pc.is_nan(root)), root)


def floored(values: Values, by: int) -> Values:
    """Divided, and rounded down also below zero."""
    whole = pc.divide(values, by)
    below = pc.and_(pc.less(values, 0), pc.not_equal(pc.multiply(whole, by), values))
    return pc.subtract(whole, below.cast(pa.int64()))


_NUMERIC: dict[str, Callable[[Values], Values]] = {
    "abs": _size,
    "sqrt": _root,
    "floor": _rounded(pc.floor),
    "ceil": _rounded(pc.ceil),
    "length": lambda values: pc.utf8_length(values).cast(pa.int64()),
}
