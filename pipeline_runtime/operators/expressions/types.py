"""Finds the type that an expression has over a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline_runtime.model.faults import did_you_mean, listed
from pipeline_runtime.model.schema import FieldType, StreamSchema, types_in_words
from pipeline_runtime.operators.expressions.functions import FUNCTIONS, Kind
from pipeline_runtime.operators.expressions.syntax import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    ColumnUnknown,
    ExpressionInvalid,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
)

NUMERIC = (FieldType.INTEGER, FieldType.NUMBER)
ROUND_DIGITS_MAX = 15
META_TYPES = {
    "_key": FieldType.STRING,
    "_time": FieldType.TIMESTAMP,
    "_batch_time": FieldType.TIMESTAMP,
}


def column_types(schema: StreamSchema) -> dict[str, FieldType]:
    """Returns the columns that an expression over this stream may name."""
    return {**META_TYPES, **{field.name: field.type for field in schema.fields}}


def type_of(node: Node, types: Mapping[str, FieldType]) -> FieldType | None:
    """Returns the type, or None for a bare null. Raises ExpressionInvalid, which names what does not fit and
    what to write instead."""
    match node:
        case Literal(value):
            return _literal_type(value)
        case Column(name):
            return _column_type(name, types)
        case Negative(operand):
            return _require(operand, types, "numeric", "-")
        case Not(operand):
            _require(operand, types, "boolean", "not")
            return FieldType.BOOLEAN
        case Binary(operator, left, right):
            return _binary_type(operator, left, right, types)
        case Cast(operand, target):
            return _cast_type(operand, target, types)
        case Case(branches, otherwise):
            for condition, _ in branches:
                _require(condition, types, "boolean", "case when")
            return _common(_typed([*(value for _, value in branches), otherwise], types), "case")
        case IsNull(operand):
            type_of(operand, types)
            return FieldType.BOOLEAN
        case In(operand, items):
            _common(_typed([operand, *items], types), "in")
            return FieldType.BOOLEAN
        case Between(operand, low, high):
            _comparable("between", (operand, low, high), types)
            return FieldType.BOOLEAN
        case Like(operand, _):
            _require(operand, types, "string", "like")
            return FieldType.BOOLEAN
        case Call():
            return _call_type(node, types)


def _literal_type(value: int | float | str | bool | None) -> FieldType | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return FieldType.BOOLEAN
    if isinstance(value, int):
        return FieldType.INTEGER
    return FieldType.NUMBER if isinstance(value, float) else FieldType.STRING


def _column_type(name: str, types: Mapping[str, FieldType]) -> FieldType:
    if name not in types:
        columns = [column for column in types if column not in META_TYPES]
        hint = did_you_mean(name, types)
        raise ColumnUnknown(name, f'there is no column "{name}"{hint} (there are: {listed(columns)})')
    return types[name]


def _require(node: Node, types: Mapping[str, FieldType], kind: Kind, where: str) -> FieldType | None:
    found = type_of(node, types)
    allowed = {
        "numeric": NUMERIC,
        "integer": (FieldType.INTEGER,),
        "string": (FieldType.STRING,),
        "boolean": (FieldType.BOOLEAN,),
        "timestamp": (FieldType.TIMESTAMP,),
        "any": tuple(FieldType),
        "digits": (FieldType.INTEGER,),
    }[kind]
    if found is not None and found not in allowed:
        wanted = types_in_words(allowed)
        raise ExpressionInvalid(
            f"{where} needs {wanted}, but {_name(node)} is {found.words}{_fix(found, kind)}"
        )
    return found


def _fix(found: FieldType, kind: Kind) -> str:
    if found is FieldType.STRING and kind in ("numeric", "integer"):
        return "; write cast(... as number)"
    if kind == "string":
        return "; write cast(... as string)"
    if kind == "boolean" and found in NUMERIC:
        return "; compare it, for example ... > 0"
    return ""


def _name(node: Node) -> str:
    match node:
        case Column(name):
            return f'"{name}"'
        case Literal(value):
            return repr(value)
        case Call(name, _):
            return f"{name}(...)"
        case _:
            return "a part of it"


_Typed = tuple[Node, FieldType | None]


def _typed(nodes: Iterable[Node], types: Mapping[str, FieldType]) -> list[_Typed]:
    return [(node, type_of(node, types)) for node in nodes]


def _common(parts: Iterable[_Typed], where: str) -> FieldType | None:
    """Returns the one type of all parts. Integers and numbers together are numbers."""
    common: FieldType | None = None
    for node, found in parts:
        if found is None or found == common:
            continue
        if common is None:
            common = found
        elif common in NUMERIC and found in NUMERIC:
            common = FieldType.NUMBER
        else:
            raise ExpressionInvalid(
                f"{where} mixes {common.words} and {found.words} ({_name(node)});"
                " make them alike with cast(... as ...)"
            )
    return common


def _binary_type(operator: str, left: Node, right: Node, types: Mapping[str, FieldType]) -> FieldType:
    if operator in ("and", "or"):
        _require(left, types, "boolean", operator)
        _require(right, types, "boolean", operator)
        return FieldType.BOOLEAN
    if operator == "||":
        _require(left, types, "string", operator)
        _require(right, types, "string", operator)
        return FieldType.STRING
    if operator in ("+", "-", "*", "/", "%"):
        found = {_require(left, types, "numeric", operator), _require(right, types, "numeric", operator)}
        return FieldType.NUMBER if operator == "/" or FieldType.NUMBER in found else FieldType.INTEGER
    _comparable(operator, (left, right), types)
    return FieldType.BOOLEAN


def _comparable(operator: str, sides: tuple[Node, ...], types: Mapping[str, FieldType]) -> None:
    if any(isinstance(side, Literal) and side.value is None for side in sides):
        raise ExpressionInvalid(f'nothing compares with null by {operator}; write "is null"')
    _common(_typed(sides, types), operator)


def _cast_type(operand: Node, target: FieldType, types: Mapping[str, FieldType]) -> FieldType:
    found = type_of(operand, types)
    pair = {found, target}
    if pair == {FieldType.BOOLEAN, FieldType.TIMESTAMP}:
        raise ExpressionInvalid(f"{found.words if found else 'null'} cannot become {target.words}")
    return target


def _call_type(node: Call, types: Mapping[str, FieldType]) -> FieldType | None:
    function = FUNCTIONS[node.name]
    parts: list[_Typed] = []
    for index, argument in enumerate(node.arguments):
        kind = function.arguments[min(index, len(function.arguments) - 1)]
        parts.append((argument, _require(argument, types, kind, node.name)))
        if kind == "digits" and not _is_digits(argument):
            raise ExpressionInvalid(f"the digits of {node.name} are a number from 0 to {ROUND_DIGITS_MAX}")
    if function.result != "same":
        return FieldType(function.result)
    return _common(parts[1:] if node.name == "if" else parts, node.name)


def _is_digits(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, int) and 0 <= node.value <= ROUND_DIGITS_MAX
