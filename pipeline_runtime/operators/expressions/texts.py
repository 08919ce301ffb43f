"""How long the texts get that an expression makes, so that no row needs more memory than there is.

Six calls of `replace` within one another, each making fifty letters of one, would make fifteen thousand
million letters of one. What rests on literals alone is refused when it is compiled. What rests on columns
is computed only where it is short enough; else it has no value, like a division by zero.
"""

from __future__ import annotations

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions.functions import CONCAT_MAX
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
"""Characters of a text that concat, || or replace makes; a column's own text may be longer."""
SEARCH_MAX = 1_000_000_000
"""Characters compared in one search, at worst: some second."""
_CASE_GROWTH = 3  # characters that upper or lower makes of one, at most: that does not add up
_VALUE_MAX = 40  # characters of a number, a time or a boolean


def check(node: Node) -> None:
    """ExpressionInvalid for a part whose text would be too long whatever the columns hold."""
    for child in children(node):
        check(child)
    name, length = _maker(node), length_max(node)
    if name is not None and length is not None and length > TEXT_MAX:
        raise ExpressionInvalid(
            f"{name} may make a text of {length:,} characters here; at most {TEXT_MAX:,} are allowed: use"
            " shorter texts, or fewer calls within one another"
        )


def is_guarded(node: Node) -> bool:
    """Its SQL needs `guard`: it is null on the rows where its text would be too long."""
    if isinstance(node, Call) and node.name == "contains":
        return not isinstance(node.arguments[1], Literal)
    return _maker(node) is not None and length_max(node) is None


def guard(name: str, arguments: list[str]) -> str:
    """The SQL condition under which the function is called; `arguments`: names or literals in SQL."""
    lengths = [f"bigint(length({argument}))" for argument in arguments]
    if name == "concat":
        return f"{' + '.join(lengths)} <= {TEXT_MAX}L"
    text, part, *_ = lengths
    search = f"{text} * {part} <= {SEARCH_MAX}L"
    if name == "contains":
        return search
    # Exact: a text without what is replaced is no longer, so it can be computed whatever the text is.
    without = f"bigint(length(replace({arguments[0]}, {arguments[1]}, '')))"
    growth = f"({text} - {without}) DIV greatest({part}, 1L) * ({lengths[2]} - {part})"
    allowed = f"{text} + {growth} <= greatest({text}, {TEXT_MAX}L)"
    return f"{search} AND ({lengths[2]} <= {part} OR {allowed})"


def joined(node: Node) -> tuple[Node, ...]:
    """The parts of `a || b || c`, at most as many as one concat has arguments."""
    parts: list[Node] = []
    while isinstance(node, Binary) and node.operator == "||" and len(parts) < CONCAT_MAX - 1:
        parts.append(node.right)
        node = node.left
    return (node, *reversed(parts))


def length_max(node: Node) -> int | None:
    """Characters of the node's text at most; None: that is for the columns to say."""
    match node:
        case Literal(value):
            return len(value) if isinstance(value, str) else _VALUE_MAX
        case Cast(operand, FieldType.STRING):
            return length_max(operand)
        case Binary("||", _, _):
            return _sum(joined(node))
        case Case(branches, otherwise):
            return _longest((*(value for _, value in branches), otherwise))
        case Call(name, arguments):
            return _call_length_max(name, arguments)
    return None


def _call_length_max(name: str, arguments: tuple[Node, ...]) -> int | None:
    match name:
        case "concat":
            return _sum(arguments)
        case "replace":
            return _replaced(*arguments)
        case "lower" | "upper":
            length = length_max(arguments[0])
            return None if length is None else length * _CASE_GROWTH
        case "substring":
            return _substring(arguments)
        case "trim" | "nullif":
            return length_max(arguments[0])
        case "if":
            return _longest(arguments[1:])
        case "coalesce" | "greatest" | "least":
            return _longest(arguments)
    return None


def _replaced(text: Node, old: Node, new: Node) -> int | None:
    length, longer = length_max(text), length_max(new)
    if length is None or longer is None:
        return None
    # An old text of unknown length is taken for one character, which makes the most of it.
    shorter = len(old.value) if isinstance(old, Literal) and isinstance(old.value, str) else 1
    if longer <= shorter or not shorter:
        return length
    return length // shorter * longer + length % shorter


def _substring(arguments: tuple[Node, ...]) -> int | None:
    text, _, count = arguments
    length = length_max(text)
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        return length
    return max(0, count.value) if length is None else min(length, max(0, count.value))


def _sum(nodes: tuple[Node, ...]) -> int | None:
    lengths = [length_max(node) for node in nodes]
    known = [length for length in lengths if length is not None]
    return sum(known) if len(known) == len(lengths) else None


def _longest(nodes: tuple[Node, ...]) -> int | None:
    lengths = [length_max(node) for node in nodes]
    known = [length for length in lengths if length is not None]
    return max(known, default=0) if len(known) == len(lengths) else None


def _maker(node: Node) -> str | None:
    """The name of a function whose text may be longer than its arguments' together."""
    if isinstance(node, Binary) and node.operator == "||":
        return "||"
    return node.name if isinstance(node, Call) and node.name in ("concat", "replace") else None
