"""Conditions and formulas are a checked part of SQL.

Literals: `12`, `0.5`, `'text'`, `true`, `false`, `null`. Columns by their name, odd names in backticks.
Operators: `+ - * / %`, `||` (joins texts), `= != < <= > >=`, `and or not`, `is [not] null`,
`[not] in (...)`, `[not] between x and y`, `[not] like 'a%'`, `case when ... then ... else ... end`,
`cast(x as type)` with integer, number, string, boolean, timestamp.

Nothing in an expression depends on the time or the place of a run (`now()`, `rand()` and their like are
refused): an element that was moved or restored must compute again what it computed before.
"""

# `syntax` parses text to a tree, `types` says what type it has over a schema, `arrow` evaluates it.
from pipeline_runtime.operators.expressions.compiled import Compiled, compile_expression
from pipeline_runtime.operators.expressions.syntax import (
    ColumnUnknown,
    ExpressionInvalid,
    columns_of,
    parse,
    with_column,
)

__all__ = [
    "ColumnUnknown",
    "Compiled",
    "ExpressionInvalid",
    "columns_of",
    "compile_expression",
    "parse",
    "with_column",
]
