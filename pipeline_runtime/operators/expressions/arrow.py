"""Evaluates an expression's tree on Arrow columns: its value for each row of a table, and where it has
failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions import texts
from pipeline_runtime.operators.expressions.calls import STRICT, computed, joined
from pipeline_runtime.operators.expressions.casts import cast
from pipeline_runtime.operators.expressions.functions import FUNCTIONS
from pipeline_runtime.operators.expressions.patterns import is_like
from pipeline_runtime.operators.expressions.syntax import (
    Between,
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
    columns_of,
)
from pipeline_runtime.operators.expressions.values import (
    Values,
    alike,
    any_true,
    as_type,
    has_nulls,
    is_typed,
    where,
)
from pipeline_runtime.operators.recording import arrow_type

_COMPARISONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = ("+", "-", "*", "/", "%")
_NULL = pa.scalar(None)
_FALSE, _TRUE = pa.scalar(False), pa.scalar(True)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The value for each row, and where it has failed. `failed` is true on rows where the expression should
    have a value and has none: a division by zero, an overflow, a text that is no number. A null input is no
    failure: it makes a null. `failed` is never null in a row, and None as a whole if no row has failed."""

    values: Values
    failed: Values | None


def evaluate(node: Node, type_: FieldType, rows: pa.Table) -> Evaluated:
    """Evaluates an expression of that type over the rows of a table. Returns chunked arrays."""
    parts = [_Evaluation(part).whole(node, type_) for part in _slices(node, rows)]
    values = pa.chunked_array([chunk for part in parts for chunk in part.values.chunks], arrow_type(type_))
    if all(part.failed is None for part in parts):
        return Evaluated(values, None)
    failed = [pa.repeat(False, len(p.values)) if p.failed is None else p.failed for p in parts]
    chunks = [chunk for each in failed for chunk in (each.chunks if hasattr(each, "chunks") else [each])]
    return Evaluated(values, pa.chunked_array(chunks, pa.bool_()))


def _slices(node: Node, rows: pa.Table) -> Iterator[pa.Table]:
    """Yields the rows in parts, so that each makes no more than texts.HELD_MAX characters of new texts."""
    makers = texts.makers(node)
    if not makers or not rows.num_rows:
        yield rows
        return
    columns = [rows[name] for name in columns_of(node) if is_typed(rows[name], pa.string())]
    longest = max((pc.max(pc.utf8_length(column)).as_py() or 0 for column in columns), default=0)
    at_once = texts.rows_at_once(makers, longest)
    for first in range(0, rows.num_rows, at_once):
        yield rows.slice(first, at_once)


class _Evaluation:
    """Parts of an expression over the rows of one table. A part that is always null may have no type."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def whole(self, node: Node, type_: FieldType) -> Evaluated:
        found = self._made(node)
        values = as_type(found.values, arrow_type(type_))
        return Evaluated(self._column(values), None if found.failed is None else self._column(found.failed))

    def _column(self, values: Values) -> pa.ChunkedArray:
        if isinstance(values, pa.Scalar):
            values = pa.repeat(values, self._rows.num_rows)
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])

    def _made(self, node: Node) -> Evaluated:
        match node:
            case Literal(value):
                return Evaluated(pa.scalar(value), None)
            case Column(name):
                return Evaluated(self._rows[name], None)
            case Binary("and" | "or" as operator, left, right):
                return _decided(operator, *self._each(left, right))
            case Between(operand, low, high):
                found, *ends = self._each(operand, low, high)
                above, below = (
                    _strict(_compared(name), found, end) for name, end in zip((">=", "<="), ends, strict=True)
                )
                return _decided("and", above, below)
            case Case(branches, otherwise):
                pairs = [(self._made(condition), self._made(value)) for condition, value in branches]
                return _chosen(pairs, self._made(otherwise))
            case Call("if", (condition, value, otherwise)):
                return _chosen([(self._made(condition), self._made(value))], self._made(otherwise))
            case Call("coalesce", arguments):
                return _first(self._each(*arguments))
            case Call("nullif" | "greatest" | "least" as name, arguments):
                return _lenient(_LENIENT[name], self._each(*arguments))
            case IsNull(operand):
                return _lenient(pc.is_null, self._each(operand))
            case In(operand, items):
                return _lenient(_is_in, self._each(operand, *items))
        return self._strictly(node)

    def _strictly(self, node: Node) -> Evaluated:
        """Returns a part that is null where an operand is null, and otherwise only where it has failed."""
        match node:
            case Negative(operand):
                return _strict(
                    lambda values: computed("-", pa.scalar(0), values), self._made(operand), may_fail=True
                )
            case Not(operand):
                return _strict(pc.invert, self._made(operand))
            case Binary("||", _, _):
                parts = self._each(*texts.joined(node))
                return _strict(lambda *values: joined(list(values)), *parts, may_fail=True)
            case Binary(operator, left, right) if operator in _ARITHMETIC:
                return _strict(
                    lambda *sides: computed(operator, *sides), *self._each(left, right), may_fail=True
                )
            case Binary(operator, left, right):
                return _strict(_compared(operator), *self._each(left, right))
            case Cast(operand, target):
                found = self._made(operand)
                if is_typed(found.values, pa.null()):
                    return Evaluated(as_type(found.values, arrow_type(target)), found.failed)
                return _strict(lambda values: cast(values, target), found, may_fail=True)
            case Like(operand, pattern):
                return _strict(lambda values: is_like(values, pattern), self._made(operand))
            case Call(name, arguments):
                return _strict(STRICT[name], *self._each(*arguments), may_fail=FUNCTIONS[name].may_fail)
        raise TypeError(f"{node} is no part of an expression")

    def _each(self, *nodes: Node) -> list[Evaluated]:
        return [self._made(node) for node in nodes]


def _strict(function: Callable[..., Values], *operands: Evaluated, may_fail: bool = False) -> Evaluated:
    failed = _either(*(operand.failed for operand in operands))
    if any(is_typed(operand.values, pa.null()) for operand in operands):
        return Evaluated(_NULL, failed)
    values = function(*(operand.values for operand in operands))
    if may_fail and has_nulls(values):
        missing = pc.is_null(values)
        for operand in operands:
            missing = pc.and_(missing, pc.is_valid(operand.values))
        failed = _either(failed, missing)
    return Evaluated(values, failed)


def _lenient(function: Callable[..., Values], operands: Sequence[Evaluated]) -> Evaluated:
    """Returns a part that may have a value where an operand is null, or may be null where none is."""
    failed = _either(*(operand.failed for operand in operands))
    return Evaluated(function(*(operand.values for operand in operands)), failed)


def _decided(operator: str, left: Evaluated, right: Evaluated) -> Evaluated:
    """Evaluates `and` and `or`. The right side counts only where the left one does not decide alone."""
    first, second = as_type(left.values, pa.bool_()), as_type(right.values, pa.bool_())
    is_open = pc.fill_null(first if operator == "and" else pc.invert(first), True)
    kleene = pc.and_kleene if operator == "and" else pc.or_kleene
    return Evaluated(kleene(first, second), _either(left.failed, _both(is_open, right.failed)))


def _chosen(branches: Sequence[tuple[Evaluated, Evaluated]], otherwise: Evaluated) -> Evaluated:
    """Returns the value behind the first condition that is true. A part that is not used does not fail."""
    failures: list[Values | None] = []
    is_open: Values = _TRUE
    taken = []
    for condition, value in branches:
        is_true = pc.fill_null(as_type(condition.values, pa.bool_()), False)
        failures += [_both(is_open, condition.failed), _both(pc.and_(is_open, is_true), value.failed)]
        is_open = pc.and_(is_open, pc.invert(is_true))
        taken.append(is_true)
    failures.append(_both(is_open, otherwise.failed))
    *values, chosen = alike(*(value.values for _, value in branches), otherwise.values)
    for is_true, value in zip(reversed(taken), reversed(values), strict=True):
        chosen = pc.if_else(is_true, value, chosen)
    return Evaluated(chosen, _either(*failures))


def _first(arguments: Sequence[Evaluated]) -> Evaluated:
    """Evaluates `coalesce`. An argument counts only where all before it are null."""
    failures: list[Values | None] = []
    is_open: Values = _TRUE
    for argument in arguments:
        failures.append(_both(is_open, argument.failed))
        is_open = pc.and_(is_open, pc.is_null(argument.values))
    return Evaluated(pc.coalesce(*alike(*(each.values for each in arguments))), _either(*failures))


def _either(*failures: Values | None) -> Values | None:
    known = [failed for failed in failures if failed is not None and any_true(failed)]
    return reduce(pc.or_, known) if known else None


def _both(condition: Values, failed: Values | None) -> Values | None:
    return None if failed is None else pc.and_(condition, failed)


def _compared(operator: str) -> Callable[[Values, Values], Values]:
    def compared(left: Values, right: Values) -> Values:
        left, right = alike(left, right)
        if is_typed(left, pa.bool_()):  # Arrow does not order these
            left, right = left.cast(pa.int8()), right.cast(pa.int8())
        return _COMPARISONS[operator](left, right)

    return compared


def _equal(left: Values, right: Values) -> Values:
    if pa.null() in (left.type, right.type):
        return pa.scalar(None, pa.bool_())
    return _compared("=")(left, right)


def _is_in(value: Values, *items: Values) -> Values:
    return reduce(pc.or_kleene, (_equal(value, item) for item in items))


def _nullif(value: Values, other: Values) -> Values:
    value, other = alike(value, other)
    return where(pc.invert(pc.fill_null(_equal(value, other), False)), value)


def _best(wins: str, *arguments: Values) -> Values:
    """Returns the greatest or the least value that is not null."""

    def better(best: Values, each: Values) -> Values:
        if is_typed(best, pa.null()):  # then all of them are null
            return best
        return pc.if_else(pc.fill_null(_compared(wins)(each, best), pc.is_null(best)), each, best)

    return reduce(better, alike(*arguments))


_LENIENT: dict[str, Callable[..., Values]] = {
    "nullif": _nullif,
    "greatest": lambda *arguments: _best(">", *arguments),
    "least": lambda *arguments: _best("<", *arguments),
}
