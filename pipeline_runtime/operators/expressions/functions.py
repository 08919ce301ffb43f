"""The functions of expressions. All are repeatable, and none raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["integer", "number", "string", "boolean", "timestamp", "same"]
Kind = Literal["numeric", "integer", "string", "boolean", "timestamp", "any", "digits"]

ARGUMENTS_MAX = 30


@dataclass(frozen=True)
class Function:
    """The signature of a function. `arguments` are their kinds; the last one repeats.

    `may_fail` says that the function may be null where no argument is null: it has no value there.
    """

    usage: str
    arguments: tuple[Kind, ...]
    result: Result
    arguments_min: int
    arguments_max: int
    may_fail: bool = False


def _function(
    usage: str,
    arguments: tuple[Kind, ...],
    result: Result,
    *,
    least: int | None = None,
    most: int | None = None,
    may_fail: bool = False,
) -> Function:
    low = len(arguments) if least is None else least
    return Function(usage, arguments, result, low, most or len(arguments), may_fail)


def _real(name: str) -> Function:
    return _function(f"{name}(x)", ("numeric",), "number", may_fail=True)


def _whole(name: str) -> Function:
    return _function(f"{name}(x)", ("numeric",), "integer", may_fail=True)


def _part(name: str) -> Function:
    return _function(f"{name}(time)", ("timestamp",), "integer")


def _of_any(usage: str) -> Function:
    return _function(usage, ("any",), "same", least=2, most=ARGUMENTS_MAX)


def _searched(name: str) -> Function:
    return _function(f"{name}(text, part)", ("string", "string"), "boolean")


FUNCTIONS: dict[str, Function] = {
    "abs": _function("abs(x)", ("numeric",), "same", may_fail=True),
    "sqrt": _real("sqrt"),
    "exp": _real("exp"),
    "ln": _real("ln"),
    "log10": _real("log10"),
    "log2": _real("log2"),
    "sin": _real("sin"),
    "cos": _real("cos"),
    "tan": _real("tan"),
    "pow": _function("pow(x, y)", ("numeric", "numeric"), "number", may_fail=True),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "round": _function("round(x) or round(x, digits)", ("numeric", "digits"), "number", least=1),
    "greatest": _of_any("greatest(a, b, ...)"),
    "least": _of_any("least(a, b, ...)"),
    "coalesce": _of_any("coalesce(a, b, ...)"),
    "nullif": _function("nullif(a, b)", ("any", "any"), "same"),
    "if": _function("if(condition, a, b)", ("boolean", "any"), "same", least=3, most=3),
    "lower": _function("lower(text)", ("string",), "string"),
    "upper": _function("upper(text)", ("string",), "string"),
    "trim": _function("trim(text)", ("string",), "string"),
    "length": _function("length(text)", ("string",), "integer"),
    "concat": _function(
        "concat(a, b, ...)", ("string",), "string", least=1, most=ARGUMENTS_MAX, may_fail=True
    ),
    "substring": _function("substring(text, first, length)", ("string", "integer", "integer"), "string"),
    "replace": _function("replace(text, old, new)", ("string",), "string", least=3, most=3, may_fail=True),
    "contains": _searched("contains"),
    "startswith": _searched("startswith"),
    "endswith": _searched("endswith"),
    "year": _part("year"),
    "month": _part("month"),
    "day": _part("day"),
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
    "weekday": _part("weekday"),
    "unix_millis": _part("unix_millis"),
}

NOT_REPEATABLE = frozenset(
    [
        "now",
        "current_timestamp",
        "current_date",
        "current_time",
        "localtimestamp",
        "curdate",
        "current_timezone",
        "today",
        "getdate",
        "sysdate",
        "unix_timestamp",
        "rand",
        "randn",
        "random",
        "randstr",
        "uniform",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "current_user",
        "session_user",
        "current_catalog",
        "current_database",
        "current_schema",
    ]
)
"""Functions (and names that SQL reads as functions) that give another value at each run."""
