"""Tree to Spark SQL that never raises, and a second expression that tells where it failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.expressions import texts
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
    children,
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
# They may have a value where an argument is null, or null where none is.
_LENIENT = ("coalesce", "if", "nullif", "greatest", "least")
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


def compile_expression(text: str, schema: StreamSchema) -> Compiled:
    """Checks an expression over a stream and compiles it; raises ExpressionInvalid."""
    node = parse(text)
    found = type_of(node, column_types(schema))
    if found is None:
        raise ExpressionInvalid("the expression is always null, so it has no type; write cast(null as ...)")
    texts.check(node)
    value = f"cast({to_sql(node)} as {SPARK_TYPES[found]})"
    failures = _failures(node)
    if found is FieldType.NUMBER and not isinstance(node, Column | Literal):
        # Infinity and NaN are no JSON numbers.
        failures = [*failures, f"coalesce(NOT (abs({value}) < double('Infinity')), false)"]
    failed = _any(failures)
    if len(value) + len(failed or "") > SQL_MAX:
        raise ExpressionInvalid("the expression has too many parts; derive a column from some of them first")
    return Compiled(found, value, failed)


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
    if isinstance(value, float):
        # Without the D it would be a decimal, whose precision depends on how it is written.
        return f"{value!r}D" if value >= 0 else f"(-{-value!r}D)"
    return quote_text(value)


def _failures(node: Node) -> list[str]:
    """SQL conditions, one per part that may fail; a part that is not evaluated does not fail."""
    match node:
        case Binary("and" | "or" as operator, left, right):
            # The right side counts only where the left one does not decide alone.
            open_ = f"coalesce({'' if operator == 'and' else 'NOT '}{to_sql(left)}, true)"
            return [*_failures(left), *_guarded(open_, _failures(right))]
        case Case(branches, otherwise):
            return _case_failures(branches, otherwise)
        case Call("if", (condition, first, second)):
            return _case_failures(((condition, first),), second)
        case Call("coalesce", arguments):
            found: list[str] = []
            for index, argument in enumerate(arguments):
                before = " AND ".join(f"{to_sql(earlier)} IS NULL" for earlier in arguments[:index])
                found += _guarded(before, _failures(argument)) if before else _failures(argument)
            return found
    if not _strict(node):
        return [condition for child in children(node) for condition in _failures(child)]
    # A tree of strict parts is null only if something it rests on is null, or if it failed: one
    # condition for all of it, so that the SQL does not grow with the square of the expression.
    grounds, may_fail = _grounds(node)
    found = [condition for ground in grounds for condition in _failures(ground)]
    if may_fail:
        given = [f"{to_sql(ground)} IS NOT NULL" for ground in dict.fromkeys(grounds)]
        found.append("(" + " AND ".join([f"{to_sql(node)} IS NULL", *given]) + ")")
    return found


def _strict(node: Node) -> bool:
    """Null whenever an operand is null, and else only if it failed."""
    match node:
        case Binary(operator, _, _):
            return operator not in ("and", "or")
        case Call(name, _):
            return name not in _LENIENT
        case Negative() | Not() | Cast() | Like():
            return True
        case _:
            return False


def _grounds(node: Node) -> tuple[list[Node], bool]:
    """What a strict tree rests on (its first parts that are not strict), and whether it may fail."""
    grounds: list[Node] = []
    may_fail = False
    stack = [node]
    while stack:
        part = stack.pop()
        if _strict(part):
            may_fail = may_fail or _may_fail(part)
            stack.extend(reversed(children(part)))
        elif not (isinstance(part, Literal) and part.value is not None):
            grounds.append(part)
    return grounds, may_fail


def _may_fail(node: Node) -> bool:
    match node:
        case Binary(operator, _, _):
            return operator in _TRY or texts.is_guarded(node)
        case Call(name, _):
            return FUNCTIONS[name].may_fail or texts.is_guarded(node)
        case Cast(_, target):
            return target is not FieldType.STRING
        case Negative(_):
            return True
        case _:
            return False


def _case_failures(branches: Iterable[tuple[Node, Node]], otherwise: Node) -> list[str]:
    found: list[str] = []
    undecided = "true"
    for condition, value in branches:
        taken = to_sql(condition)
        found += _guarded(undecided, _failures(condition))
        found += _guarded(f"{undecided} AND coalesce({taken}, false)", _failures(value))
        undecided += f" AND NOT coalesce({taken}, false)"
    return [*found, *_guarded(undecided, _failures(otherwise))]


def _guarded(condition: str, failures: list[str]) -> list[str]:
    return [f"({condition} AND {failure})" for failure in failures]


def _any(failures: list[str]) -> str | None:
    return "(" + " OR ".join(dict.fromkeys(failures)) + ")" if failures else None
