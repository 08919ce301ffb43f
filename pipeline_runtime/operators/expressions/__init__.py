"""The language of conditions and formulas: a checked part of SQL.

`syntax` parses text to a tree, `types` says what type it has over a schema, `sparksql` compiles it
to Spark SQL that never raises. Checking needs no JVM, so the editor answers at once.

What it knows: numbers, 'text', true, false, null, column names (odd ones in `backticks`);
+ - * / %, || (joins text), = != <> < <= > >=, and, or, not, is [not] null, [not] in (...),
[not] between x and y, [not] like 'a%', case when ... then ... else ... end, cast(x as type) and the
functions in `functions.FUNCTIONS`. Nothing in it depends on the time or the place of a run: an
element that was moved or restored must compute again what it computed before.
"""

from pipeline_runtime.operators.expressions.sparksql import Compiled, compile_expression
from pipeline_runtime.operators.expressions.syntax import ExpressionInvalid, columns_of, parse

__all__ = ["Compiled", "ExpressionInvalid", "columns_of", "compile_expression", "parse"]
