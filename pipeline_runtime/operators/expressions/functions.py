"""The functions of expressions: repeatable ones only, none that raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["integer", "number", "string", "boolean", "timestamp", "same"]
Kind = Literal["numeric", "integer", "string", "boolean", "timestamp", "any", "digits"]


@dataclass(frozen=True)
class Function:
    """`sql`: with {0}, {1}, ... or {all} for the arguments. `arguments`: kinds; the last repeats.

    `may_fail`: null although no argument is null means that it has no value there.
    """

    usage: str
    arguments: tuple[Kind, ...]
    result: Result
    sql: str
    arguments_min: int
    arguments_max: int
    may_fail: bool = False


def _function(
    usage: str,
    arguments: tuple[Kind, ...],
    result: Result,
    sql: str,
    *,
    least: int | None = None,
    most: int | None = None,
    may_fail: bool = False,
) -> Function:
    low = len(arguments) if least is None else least
    return Function(usage, arguments, result, sql, low, most or len(arguments), may_fail)


def _real(name: str) -> Function:
    # NaN is no JSON number and no answer: it counts as a failure.
    sql = f"nullif({name}(cast({{0}} as double)), double('NaN'))"
    return _function(f"{name}(x)", ("numeric",), "number", sql, may_fail=True)


def _whole(name: str) -> Function:
    # Spark raises where the result is no 64 bit integer.
    sql = f"CASE WHEN abs(cast({{0}} as double)) < 9.2e18D THEN {name}(cast({{0}} as double)) END"
    return _function(f"{name}(x)", ("numeric",), "integer", sql, may_fail=True)


def _part(name: str, sql: str = "") -> Function:
    # Date parts are of UTC: the session's time zone is UTC on every node.
    return _function(f"{name}(time)", ("timestamp",), "integer", f"cast({sql or name}({{0}}) as bigint)")


CONCAT_MAX = 30

# `texts` says how the SQL of replace and concat is kept from making more text than memory can hold.
FUNCTIONS: dict[str, Function] = {
    "abs": _function(
        "abs(x)", ("numeric",), "same", "if({0} < 0, try_subtract(0L, {0}), {0})", may_fail=True
    ),
    "sqrt": _real("sqrt"),
    "exp": _real("exp"),
    "ln": _real("ln"),
    "log10": _real("log10"),
    "log2": _real("log2"),
    "sin": _real("sin"),
    "cos": _real("cos"),
    "tan": _real("tan"),
    "pow": _function(
        "pow(x, y)", ("numeric", "numeric"), "number", "nullif(pow({0}, {1}), double('NaN'))", may_fail=True
    ),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "round": _function(
        "round(x) or round(x, digits)",
        ("numeric", "digits"),
        "number",
        "round(cast({0} as double), {1})",
        least=1,
    ),
    "greatest": _function("greatest(a, b, ...)", ("any",), "same", "greatest({all})", least=2, most=30),
    "least": _function("least(a, b, ...)", ("any",), "same", "least({all})", least=2, most=30),
    "coalesce": _function("coalesce(a, b, ...)", ("any",), "same", "coalesce({all})", least=2, most=30),
    "nullif": _function("nullif(a, b)", ("any", "any"), "same", "nullif({all})"),
    "if": _function("if(condition, a, b)", ("boolean", "any"), "same", "if({all})", least=3, most=3),
    "lower": _function("lower(text)", ("string",), "string", "lower({0})"),
    "upper": _function("upper(text)", ("string",), "string", "upper({0})"),
    "trim": _function("trim(text)", ("string",), "string", "trim({0})"),
    "length": _function("length(text)", ("string",), "integer", "cast(length({0}) as bigint)"),
    "concat": _function(
        "concat(a, b, ...)", ("string",), "string", "concat({all})", least=1, most=CONCAT_MAX
    ),
    "substring": _function(
        "substring(text, first, length)",
        ("string", "integer", "integer"),
        "string",
        "substring({0}, cast(least(greatest({1}, -2147483647L), 2147483647L) as int),"
        " cast(least(greatest({2}, 0L), 2147483647L) as int))",
    ),
    "replace": _function("replace(text, old, new)", ("string",), "string", "replace({all})", least=3, most=3),
    "contains": _function("contains(text, part)", ("string",), "boolean", "contains({all})", least=2, most=2),
    "startswith": _function(
        "startswith(text, part)", ("string",), "boolean", "startswith({all})", least=2, most=2
    ),
    "endswith": _function("endswith(text, part)", ("string",), "boolean", "endswith({all})", least=2, most=2),
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
"""Functions (and names that SQL reads as such) that give another value at each run."""
