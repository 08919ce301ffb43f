"""Computes an expression row by row in plain Python, by the rules of docs/reference/operators.md."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions import syntax as s
from pipeline_runtime.operators.expressions.types import type_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT_MAX = 100_000


class FailedError(Exception):
    """The expression should have a value for this row, and has none."""


def value_of(node, row, types):
    """The value of an expression for a row (name to value), or FailedError. `types`: name to type."""

    def of(part):
        value = _value(part, row, of)
        # An integer beside numbers is one of them.
        is_number = type(value) is int and type_of(part, types) is FieldType.NUMBER
        return float(value) if is_number else value

    return of(node)


def _value(node, row, of):
    match node:
        case s.Literal(value):
            return value
        case s.Column(name):
            return row[name]
        case s.Binary("and", left, right):
            return _and(of(left), lambda: of(right))
        case s.Binary("or", left, right):
            found = _and(_not(of(left)), lambda: _not(of(right)))
            return _not(found)
        case s.Between(operand, low, high):
            value = of(operand)
            return _and(_compared(">=", value, of(low)), lambda: _compared("<=", value, of(high)))
        case s.Case(branches, otherwise):
            for condition, value in branches:
                if of(condition):
                    return of(value)
            return of(otherwise)
        case s.Call("if", (condition, value, otherwise)):
            return of(value if of(condition) else otherwise)
        case s.Call("coalesce", arguments):
            return next((v for v in (of(each) for each in arguments) if v is not None), None)
        case s.IsNull(operand):
            return of(operand) is None
    values = [of(child) for child in s.children(node)]
    match node:
        case s.In():
            return _is_in(*values)
        case s.Call("nullif"):
            return None if _compared("=", *values) else values[0]
        case s.Call("greatest" | "least" as name):
            given = [value for value in values if value is not None]
            return (max if name == "greatest" else min)(given) if given else None
    return None if None in values else _strict(node, *values)


def _and(left, right):
    """`right` is a function: it is not looked at where the left side decides."""
    if left is False:
        return False
    right = right()
    return False if right is False else None if left is None or right is None else True


def _not(value):
    return None if value is None else not value


def _compared(operator, left, right):
    if left is None or right is None:
        return None
    if float in (type(left), type(right)):
        left, right = float(left), float(right)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def _is_in(value, *items):
    found = [_compared("=", value, item) for item in items]
    return True if True in found else None if None in found else False


def _strict(node, *values):
    match node:
        case s.Negative():
            return _whole_or_finite(0 - values[0])
        case s.Not():
            return not values[0]
        case s.Binary("||"):
            return _short("".join(values))
        case s.Binary(operator) if operator in "+-*/%":
            return _computed(operator, *values)
        case s.Binary(operator):
            return _compared(operator, *values)
        case s.Cast(_, target):
            return cast(values[0], target)
        case s.Like(_, pattern):
            return is_like(values[0], pattern)
        case s.Call(name):
            return CALLS[name](*values)
    raise TypeError(node)


def _whole_or_finite(value):
    if not (-(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)):
        raise FailedError("too large")
    return value


def _computed(operator, left, right):
    if operator == "/" or float in (type(left), type(right)):
        left, right = float(left), float(right)
    if operator in "/%" and right == 0:
        raise FailedError("a division by zero")
    if operator == "%":
        return math.fmod(left, right) if isinstance(left, float) else _remainder(left, right)
    return _whole_or_finite(
        {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}[operator]()
        if operator != "/"
        else left / right
    )


def _remainder(left, right):
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _short(text):
    if len(text) > TEXT_MAX:
        raise FailedError("a text that is too long")
    return text


def is_like(text, pattern):
    """By the definition: which ends of the text's beginnings does the pattern reach?"""
    reached = {0}
    for char in pattern:
        if char == "%":
            reached = set(range(min(reached, default=len(text) + 1), len(text) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(text) and char in ("_", text[at])}
    return len(text) in reached


# -- from one type to another --------------------------------------------------------------------------


def cast(value, target):
    match value, target:
        case bool(), FieldType.STRING:
            return "true" if value else "false"
        case float(), FieldType.STRING:
            return number_text(value)
        case datetime(), FieldType.STRING:
            return f"{value.year:04}-{value:%m-%dT%H:%M:%S.%f}Z"
        case str(), FieldType.STRING:
            return value
        case _, FieldType.STRING:
            return str(value)
        case str(), _:
            return _read(value.strip(" \t\n\r\v\f"), target)
        case _, FieldType.BOOLEAN:
            return value != 0
        case datetime(), FieldType.INTEGER:
            return (value - EPOCH) // timedelta(seconds=1)
        case datetime(), FieldType.NUMBER:
            return (value - EPOCH) // timedelta(microseconds=1) / 1e6
        case datetime(), FieldType.TIMESTAMP:
            return value
        case _, FieldType.INTEGER:
            return _whole_or_finite(int(value))
        case _, FieldType.NUMBER:
            return float(value)
    micros = value * 1_000_000 if isinstance(value, int) else value * 1e6
    try:
        return EPOCH + timedelta(microseconds=round(micros))
    except OverflowError as error:
        raise FailedError("beyond the calendar") from error


def number_text(value):
    """The shortest digits that read back as it, plainly between a millionth and ten thousand million."""
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits, _, exponent = f"{Decimal(repr(abs(value))):e}".partition("e")
    digits = digits.replace(".", "").rstrip("0") or "0"
    exponent = int(exponent) if value else 0
    if not -6 <= exponent <= 9:
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent:+d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 2, "0")
    return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :]}"


def _read(text, target):
    if target is FieldType.BOOLEAN:
        if text.lower() in ("true", "t", "yes", "y", "1"):
            return True
        if text.lower() in ("false", "f", "no", "n", "0"):
            return False
    if target is FieldType.INTEGER and re.fullmatch(r"[+-]?[0-9]+", text):
        return _whole_or_finite(int(text))
    if target is FieldType.NUMBER and re.fullmatch(
        r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text
    ):
        return _whole_or_finite(float(text))
    if target is FieldType.TIMESTAMP:
        form = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?"
        if re.fullmatch(form, text, re.ASCII):
            try:
                found = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
                return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
            except (ValueError, OverflowError) as error:
                raise FailedError(str(error)) from error
    raise FailedError(f"{text!r} cannot be read")


# -- functions -----------------------------------------------------------------------------------------


def _real(function):
    def of(*values):
        try:
            return _whole_or_finite(function(*map(float, values)))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise FailedError(str(error)) from error

    return of


def _power(x, y):
    made = x**y
    if isinstance(made, complex):
        raise ValueError("a root of a negative number")
    return made


def _whole(function):
    return lambda value: _whole_or_finite(int(function(value)))


def rounded(value, digits=0):
    with localcontext(prec=400):
        exact = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return float(exact) or 0.0


def _substring(text, first, length):
    start = first - 1 if first > 0 else first + len(text) if first < 0 else 0
    end = start + max(0, length)
    return "".join(char for place, char in enumerate(text) if start <= place < end)


def _replaced(text, old, new):
    made = text.replace(old, new) if old else text
    if len(made) > max(len(text), TEXT_MAX):
        raise FailedError("a text that is too long")
    return made


CALLS = {
    "abs": lambda value: _whole_or_finite(abs(value)),
    **{name: _real(getattr(math, name)) for name in ("sqrt", "exp", "log10", "log2", "sin", "cos", "tan")},
    "ln": _real(math.log),
    "pow": _real(_power),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": rounded,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" "),
    "length": len,
    "concat": lambda *parts: _short("".join(parts)),
    "substring": _substring,
    "replace": _replaced,
    "contains": lambda text, part: part in text,
    "startswith": str.startswith,
    "endswith": str.endswith,
    **{
        name: (lambda time, name=name: getattr(time, name))
        for name in ("year", "month", "day", "hour", "minute", "second")
    },
    "weekday": datetime.weekday,
    "unix_millis": lambda time: (time - EPOCH) // timedelta(milliseconds=1),
}
