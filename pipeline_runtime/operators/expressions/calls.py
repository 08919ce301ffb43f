"""The functions of expressions, on columns. These here return null where an argument is null."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.operators.expressions.texts import TEXT_MAX
from pipeline_runtime.operators.expressions.values import (
    Values,
    any_true,
    as_type,
    each,
    finite,
    floored,
    in_64_bits,
    is_typed,
    where,
    whole,
)

_EXACT = Context(prec=800)  # more digits than any number of 64 bits has


# -- numbers -------------------------------------------------------------------------------------------


def computed(operator: str, left: Values, right: Values) -> Values:
    """Evaluates `+ - * / %`. Returns null where there is no result: for a divisor of 0, beyond the integers
    of 64 bits, and beyond the finite numbers."""
    if operator == "/" or pa.float64() in (left.type, right.type):
        left, right = as_type(left, pa.float64()), as_type(right, pa.float64())
    if operator in ("/", "%"):
        right = where(pc.not_equal(right, 0), right)
    if operator == "%":
        return _remainder(left, right)
    if left.type == pa.float64():
        return finite(_NUMBERS[operator](left, right))
    try:
        return _CHECKED[operator](left, right)
    except pa.ArrowInvalid:  # some row is beyond them
        return each(_EXACTLY[operator], pa.int64(), left, right)


_NUMBERS = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_EXACTLY: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: in_64_bits(a + b),
    "-": lambda a, b: in_64_bits(a - b),
    "*": lambda a, b: in_64_bits(a * b),
}


def _remainder(left: Values, right: Values) -> Values:
    """Returns the exact remainder with the sign of the dividend."""
    made = each(np.fmod, left.type, left, right) if _is_small(left, right) else _remainders(left, right)
    return finite(made) if made.type == pa.float64() else made


def _is_small(*columns: Values) -> bool:
    return all(isinstance(column, pa.Scalar) for column in columns)


def _remainders(left: Values, right: Values) -> Values:
    """Returns the remainders of whole columns at once."""
    known = pc.and_(pc.is_valid(left), pc.is_valid(right))
    sides = [pc.fill_null(side, 1) for side in (left, right)]
    given = [side.as_py() if isinstance(side, pa.Scalar) else side.to_numpy() for side in sides]
    with np.errstate(invalid="ignore"):
        made = np.fmod(*given)
    return where(known, pa.chunked_array([pa.array(made, left.type)]))


def _absolute(numbers: Values) -> Values:
    if numbers.type == pa.int64():  # the smallest integer has no counterpart
        numbers = where(pc.not_equal(numbers, -(2**63)), numbers)
    return pc.abs(numbers)


def _real(function: Callable[..., Values]) -> Callable[..., Values]:
    """Wraps a function of numbers so that it is null where the result is not finite. Arrow calls the C
    library for each number separately, so the result for a row does not depend on the rows beside it."""

    def made(*arguments: Values) -> Values:
        return finite(function(*(as_type(each, pa.float64()) for each in arguments)))

    return made


def _whole(function: Callable[[Values], Values], numbers: Values) -> Values:
    if is_typed(numbers, pa.int64()):
        return numbers  # a double does not have all of them
    return whole(function(as_type(numbers, pa.float64())))


def _round(numbers: Values, digits: Values | None = None) -> Values:
    places = 0 if digits is None else digits.as_py()
    numbers = as_type(numbers, pa.float64())
    if isinstance(numbers, pa.Scalar):
        return each(lambda value: rounded(value, places), pa.float64(), numbers)
    given = numbers.to_numpy(zero_copy_only=False)  # a null is NaN there
    # Whole numbers divided by a power of ten give the nearest number. A number that may lie half way between
    # two of them, or that has no room for decimals, is rounded by its text.
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = given * 10.0**places
        made = np.rint(scaled) / 10.0**places + 0.0
        half_way = np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) <= np.abs(scaled) * 2.0**-50
        unclear = np.flatnonzero(half_way | ~(np.abs(scaled) < 2.0**50))
    for row in unclear.tolist():
        made[row] = rounded(float(given[row]), places)
    return where(pc.is_valid(numbers), pa.chunked_array([pa.array(made)]))


def rounded(value: float, digits: int) -> float:
    """Returns the number rounded to so many decimals, half away from zero.

    The number counts as it is written, so 1.005 becomes 1.01. Zero then has no sign. NaN and infinity stay as
    they are.
    """
    if not isfinite(value):
        return value
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)) + 0.0


# -- texts ---------------------------------------------------------------------------------------------


def joined(parts: list[Values]) -> Values:
    """Returns the parts as one text, or null where it would be longer than texts.TEXT_MAX."""
    length = pc.utf8_length(parts[0]).cast(pa.int64())
    for part in parts[1:]:
        length = pc.add(length, pc.utf8_length(part).cast(pa.int64()))
    fits = pc.less_equal(length, TEXT_MAX)
    return pc.binary_join_element_wise(where(fits, parts[0]), *parts[1:], "", null_handling="emit_null")


def _cased(in_ascii: Callable[[Values], Values], else_: Callable[[str], str], texts: Values) -> Values:
    if any_true(pc.invert(pc.string_is_ascii(pc.fill_null(texts, "")))):
        return each(else_, pa.string(), texts)
    return in_ascii(texts)


def _substring(text: str, first: int, length: int) -> str:
    start = first - 1 if first > 0 else len(text) + first if first < 0 else 0
    return text[max(0, start) : max(0, start + max(0, length))]


def _replaced(text: str, old: str, new: str) -> str | None:
    """Returns None where the text would become longer than before and longer than TEXT_MAX."""
    if not old:
        return text
    length = len(text) + text.count(old) * (len(new) - len(old)) if len(new) > len(old) else 0
    return text.replace(old, new) if length <= max(len(text), TEXT_MAX) else None


def _found(
    for_one: Callable[..., Values], in_python: Callable[[str, str], bool], texts: Values, part: Values
) -> Values:
    if isinstance(part, pa.Scalar) and part.is_valid:
        return for_one(texts, part.as_py())
    return each(in_python, pa.bool_(), texts, part)


# -- by name -------------------------------------------------------------------------------------------


def _part_of(function: Callable[[Values], Values]) -> Callable[[Values], Values]:
    return lambda times: function(times).cast(pa.int64())


STRICT: dict[str, Callable[..., Values]] = {
    "abs": _absolute,
    "sqrt": _real(pc.sqrt),
    "exp": _real(pc.exp),
    "ln": _real(pc.ln),
    "log10": _real(pc.log10),
    "log2": _real(pc.log2),
    "sin": _real(pc.sin),
    "cos": _real(pc.cos),
    "tan": _real(pc.tan),
    "pow": _real(pc.power),
    "floor": partial(_whole, pc.floor),
    "ceil": partial(_whole, pc.ceil),
    "round": _round,
    "lower": partial(_cased, pc.ascii_lower, str.lower),
    "upper": partial(_cased, pc.ascii_upper, str.upper),
    "trim": lambda texts: pc.utf8_trim(texts, " "),
    "length": lambda texts: pc.utf8_length(texts).cast(pa.int64()),
    "concat": lambda *parts: joined(list(parts)),
    "substring": partial(each, _substring, pa.string()),
    "replace": partial(each, _replaced, pa.string()),
    "contains": partial(_found, pc.match_substring, lambda text, part: part in text),
    "startswith": partial(_found, pc.starts_with, str.startswith),
    "endswith": partial(_found, pc.ends_with, str.endswith),
    "year": _part_of(pc.year),
    "month": _part_of(pc.month),
    "day": _part_of(pc.day),
    "hour": _part_of(pc.hour),
    "minute": _part_of(pc.minute),
    "second": _part_of(pc.second),
    "weekday": _part_of(pc.day_of_week),
    "unix_millis": lambda times: floored(times.cast(pa.int64()), 1000),
}
