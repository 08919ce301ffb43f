"""Tree to Spark SQL that never raises, and a second expression that tells where it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.expressions import texts
from pipeline_runtime.operators.expressions.failures import INFINITY, failed
from pipeline_runtime.operators.expressions.functions import FUNCTIONS
from pipeline_runtime.operators.expressions.patterns import like_regex
from pipeline_runtime.operators.expressions.syntax import (
    Binary,
    Call,
    Case,
    Cast,
    Column,
    ExpressionInvalid,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    parse,
)
from pipeline_runtime.operators.expressions.types import column_types, type_of

SPARK_TYPES = {
    FieldType.INTEGER: "bigint",
    FieldType.NUMBER: "double",
    FieldType.STRING: "string",
    FieldType.BOOLEAN: "boolean",
    FieldType.TIMESTAMP: "timestamp",
}
# Some functions name an argument several times, so calls within calls grow by powers.
CALL_SQL_MAX = 20_000
# More than that takes Spark seconds to plan, for every start of the element.
SQL_MAX = 200_000
_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


@dataclass(frozen=True)
class Compiled:
    """`sql` gives the value, null where it has none; `failed_sql` is true (never null) on rows where
    it should have one: a division by zero, an overflow, a text that is no number. A null input is
    not a failure: it makes a null."""

    type: FieldType
    sql: str
    failed_sql: str | None  # None: it cannot fail
    node: Node  # what both are made of
    failed: Node | None
    types: Mapping[str, FieldType]  # of what it may name


def compile_expression(text: str, schema: StreamSchema) -> Compiled:
    """Checks an expression over a stream and compiles it; raises ExpressionInvalid."""
    node = parse(text)
    types = column_types(schema)
    found = type_of(node, types)
    if found is None:
        raise ExpressionInvalid("the expression is always null, so it has no type; write cast(null as ...)")
    texts.check(node)
    value = f"cast({to_sql(node)} as {SPARK_TYPES[found]})"
    failure = failed(node, found)
    failed_sql = None if failure is None else to_sql(failure)
    if len(value) + len(failed_sql or "") > SQL_MAX:
        raise ExpressionInvalid("the expression has too many parts; derive a column from some of them first")
    return Compiled(found, value, failed_sql, node, failure, types)


def quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def to_sql(node: Node) -> str:
    match node:
        case Literal(value):
            return _literal(value)
        case Column(name):
            return quote_name(name)
        case Negative(operand):
            return f"try_subtract(0L, {to_sql(operand)})"
        case Not(operand):
            return f"(NOT {to_sql(operand)})"
        case Binary("||", _, _):
            return _call(node, "concat", texts.joined(node))
        case Binary(operator, left, right) if operator in _TRY:
            return f"{_TRY[operator]}({to_sql(left)}, {to_sql(right)})"
        case Binary(operator, left, right):
            return f"({to_sql(left)} {operator.upper()} {to_sql(right)})"
        case Cast(operand, target):
            return f"try_cast({to_sql(operand)} as {SPARK_TYPES[target]})"
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {to_sql(c)} THEN {to_sql(v)}" for c, v in branches)
            return f"CASE {whens} ELSE {to_sql(otherwise)} END"
        case IsNull(operand):
            return f"({to_sql(operand)} IS NULL)"
        case In(operand, items):
            return f"({to_sql(operand)} IN ({', '.join(map(to_sql, items))}))"
        case Like(operand, pattern):
            regex = like_regex(pattern)
            how = f"LIKE {quote_text(pattern)}" if regex is None else f"RLIKE {quote_text(regex)}"
            return f"({to_sql(operand)} {how})"
        case Call(name, arguments):
            return _call(node, name, arguments)


def _call(node: Node, name: str, arguments: tuple[Node, ...]) -> str:
    parts = [to_sql(argument) for argument in arguments]
    if name == "round" and len(parts) == 1:
        parts.append("0")
    if name == "round":
        parts[1] = parts[1].removesuffix("L")
    if texts.is_guarded(node):
        sql = _guarded_call(name, arguments, parts)
    else:
        sql = FUNCTIONS[name].sql.format(*parts, all=", ".join(parts))
    if len(sql) > CALL_SQL_MAX:
        raise ExpressionInvalid(f"{name}(...) has too much within it; derive a field of the inner part first")
    return sql


def _guarded_call(name: str, arguments: tuple[Node, ...], parts: list[str]) -> str:
    """The call where `texts.guard` allows it, else null. The function's body is where its arguments have
    names, so that each is written, and computed, once: else calls within calls would grow by powers."""
    fields, names = [], []
    for index, (argument, sql) in enumerate(zip(arguments, parts, strict=True)):
        if isinstance(argument, Literal):
            names.append(sql)
        else:
            names.append(f"v.a{index}")
            fields.append(f"{sql} AS a{index}")
    call = FUNCTIONS[name].sql.format(*names, all=", ".join(names))
    body = f"if({texts.guard(name, names)}, {call}, NULL)"
    return f"transform(array(struct({', '.join(fields)})), v -> {body})[0]"


def _literal(value: int | float | str | bool | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}L" if value >= 0 else f"(-{-value}L)"
    if value == INFINITY.value:
        return "double('Infinity')"
    if isinstance(value, float):
        # Without the D it would be a decimal, whose precision depends on how it is written.
        return f"{value!r}D" if value >= 0 else f"(-{-value!r}D)"
    return quote_text(value)
