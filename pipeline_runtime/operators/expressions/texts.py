"""Limits how long the texts get that an expression makes, so that no row needs more memory than there is.

Six nested calls of `replace` that each make fifty letters of one would make fifteen thousand million letters
of one. A text that is too long from literals alone is refused when the expression is compiled. A text from
columns is computed only where it is short enough; otherwise it has no value, as for a division by zero.
"""

from __future__ import annotations

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions.syntax import (
    Binary,
    Call,
    Case,
    Cast,
    ExpressionInvalid,
    Literal,
    Node,
    children,
)

TEXT_MAX = 100_000
"""The most characters of a text that concat, || or replace makes. A column's own text may be longer."""
HELD_MAX = 50_000_000
"""The most characters of the texts that are made for the rows evaluated together."""
_CASE_GROWTH = 3  # the most characters that upper or lower makes of one; repeated calls do not multiply it
_VALUE_MAX = 40  # characters of a number, a time or a boolean


def check(node: Node) -> None:
    """Raises ExpressionInvalid for a part whose text would be too long whatever the columns hold."""
    for child in children(node):
        check(child)
    name, length = _maker(node), length_max(node)
    if name is not None and length is not None and length > TEXT_MAX:
        raise ExpressionInvalid(
            f"{name} may make a text of {length:,} characters here; at most {TEXT_MAX:,} are allowed: use"
            " shorter texts, or fewer calls within one another"
        )


def joined(node: Node) -> tuple[Node, ...]:
    """Returns the parts of `a || b || c`."""
    parts: list[Node] = []
    while isinstance(node, Binary) and node.operator == "||":
        parts.append(node.right)
        node = node.left
    return (node, *reversed(parts))


def makers(node: Node) -> list[Node]:
    """Returns the parts whose text may be longer than those of their arguments together; `a || b || c` is one
    part."""
    is_joined = isinstance(node, Binary) and node.operator == "||"
    inner = joined(node) if is_joined else children(node)
    found = [maker for child in inner for maker in makers(child)]
    return [*found, node] if _maker(node) is not None else found


def rows_at_once(makers_: list[Node], longest: int) -> int:
    """Returns how many rows may be evaluated together. `longest` is the length of the longest text in the
    columns."""
    a_row = 0
    for maker in makers_:
        length = length_max(maker, longest)
        a_row += min(TEXT_MAX if length is None else length, max(TEXT_MAX, longest))
    return max(1, HELD_MAX // max(1, a_row))


def length_max(node: Node, column: int | None = None) -> int | None:
    """Returns the most characters that the node's text can have. `column` is the most that a column's text
    has. Returns None if it is None and the text depends on a column."""
    match node:
        case Literal(value):
            return len(value) if isinstance(value, str) else _VALUE_MAX
        case Cast(operand, FieldType.STRING):
            return length_max(operand, column)
        case Binary("||", _, _):
            return _sum(joined(node), column)
        case Case(branches, otherwise):
            return _longest((*(value for _, value in branches), otherwise), column)
        case Call(name, arguments) if name in _TEXTS:
            return _call_length_max(name, arguments, column)
    return None if column is None else max(column, _VALUE_MAX)


_TEXTS = (
    *("concat", "replace", "lower", "upper", "substring", "trim"),
    *("nullif", "if", "coalesce", "greatest", "least"),
)


def _call_length_max(name: str, arguments: tuple[Node, ...], column: int | None) -> int | None:
    match name:
        case "concat":
            return _sum(arguments, column)
        case "replace":
            return _replaced(arguments, column)
        case "lower" | "upper":
            length = length_max(arguments[0], column)
            return None if length is None else length * _CASE_GROWTH
        case "substring":
            return _substring(arguments, column)
        case "trim" | "nullif":
            return length_max(arguments[0], column)
        case "if":
            return _longest(arguments[1:], column)
    return _longest(arguments, column)


def _replaced(arguments: tuple[Node, ...], column: int | None) -> int | None:
    text, old, new = arguments
    length, longer = length_max(text, column), length_max(new, column)
    if length is None or longer is None:
        return None
    # An old text of unknown length counts as one character, which gives the longest result.
    shorter = len(old.value) if isinstance(old, Literal) and isinstance(old.value, str) else 1
    if longer <= shorter or not shorter:
        return length
    return length // shorter * longer + length % shorter


def _substring(arguments: tuple[Node, ...], column: int | None) -> int | None:
    text, _, count = arguments
    length = length_max(text, column)
    if not isinstance(count, Literal) or not isinstance(count.value, int) or count.value > TEXT_MAX:
        return length
    return max(0, count.value) if length is None else min(length, max(0, count.value))


def _sum(nodes: tuple[Node, ...], column: int | None) -> int | None:
    lengths = [length_max(node, column) for node in nodes]
    known = [length for length in lengths if length is not None]
    return sum(known) if len(known) == len(lengths) else None


def _longest(nodes: tuple[Node, ...], column: int | None) -> int | None:
    lengths = [length_max(node, column) for node in nodes]
    known = [length for length in lengths if length is not None]
    return max(known, default=0) if len(known) == len(lengths) else None


def _maker(node: Node) -> str | None:
    """Returns the name of a function whose text may be longer than those of its arguments together."""
    if isinstance(node, Binary) and node.operator == "||":
        return "||"
    return node.name if isinstance(node, Call) and node.name in ("concat", "replace") else None
