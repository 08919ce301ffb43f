"""Parses the text of an expression to a tree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from pipeline_runtime.model.faults import did_you_mean
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions.functions import FUNCTIONS, NOT_REPEATABLE

LENGTH_MAX = 2000
DEPTH_MAX = 40
LEVELS_MAX = 100


class ExpressionInvalid(ValueError):
    """The expression cannot be used. The message says what to write instead."""


class ColumnUnknown(ExpressionInvalid):
    """The expression reads a column that the stream does not have."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Literal:
    value: int | float | str | bool | None


@dataclass(frozen=True)
class Column:
    name: str


@dataclass(frozen=True)
class Negative:
    operand: Node


@dataclass(frozen=True)
class Not:
    operand: Node


@dataclass(frozen=True)
class Binary:
    """`operator`: + - * / % || = != < <= > >= and or"""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Cast:
    operand: Node
    type: FieldType


@dataclass(frozen=True)
class Case:
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


@dataclass(frozen=True)
class IsNull:
    operand: Node


@dataclass(frozen=True)
class In:
    operand: Node
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Between:
    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True)
class Like:
    operand: Node
    pattern: str


Node = Literal | Column | Negative | Not | Binary | Call | Cast | Case | IsNull | In | Between | Like

CAST_TYPES = {
    "integer": FieldType.INTEGER,
    "int": FieldType.INTEGER,
    "bigint": FieldType.INTEGER,
    "long": FieldType.INTEGER,
    "number": FieldType.NUMBER,
    "double": FieldType.NUMBER,
    "float": FieldType.NUMBER,
    "string": FieldType.STRING,
    "text": FieldType.STRING,
    "boolean": FieldType.BOOLEAN,
    "timestamp": FieldType.TIMESTAMP,
}
_KEYWORDS = frozenset(
    [
        "and",
        "or",
        "not",
        "is",
        "null",
        "in",
        "between",
        "like",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "as",
        "true",
        "false",
    ]
)
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![A-Za-z_]))
    | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<symbol><=|>=|<>|!=|==|\|\||&&|[-+*/%=<>(),])
    )""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAME = {"==": "=", "<>": "!=", "&&": "and"}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class _Token:
    kind: str  # number, string, quoted, name, keyword, symbol, end
    text: str
    column: int


def parse(text: str) -> Node:
    """Returns the tree of an expression. Raises ExpressionInvalid, which names the character and what to
    write instead."""
    if len(text) > LENGTH_MAX:
        raise ExpressionInvalid(f"the expression is longer than {LENGTH_MAX} characters; split it in two")
    node = _Parser(list(_tokens(text))).whole()
    if _levels(node) > LEVELS_MAX:
        raise ExpressionInvalid("the expression has too many parts; derive a column from some of them first")
    return node


def _levels(node: Node) -> int:
    """Returns the depth of the tree: a + b + c has three levels. Works without recursion, as the tree may be
    too deep for it."""
    deepest, stack = 0, [(node, 1)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(item))
    return deepest


def columns_of(node: Node) -> tuple[str, ...]:
    """Returns the names of the columns that an expression reads, in order of appearance."""
    return tuple(dict.fromkeys(item.name for item in _walk(node) if isinstance(item, Column)))


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Negative(operand) | Not(operand) | IsNull(operand) | Cast(operand, _) | Like(operand, _):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Call(_, arguments):
            return arguments
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case In(operand, items):
            return (operand, *items)
        case Between(operand, low, high):
            return (operand, low, high)
        case _:
            return ()


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise ExpressionInvalid(f"cannot read {text[start : start + 12]!r} at character {start + 1}")
        kind, value = str(match.lastgroup), str(match[str(match.lastgroup)])
        column = match.start(kind) + 1
        if kind == "name" and value.lower() in _KEYWORDS:
            kind, value = "keyword", value.lower()
        yield _Token(kind, _SAME.get(value, value), column)
        position = match.end()
    yield _Token("end", "", len(text) + 1)


def with_column(text: str, old: str, new: str) -> str:
    """Returns the expression with the column `new` wherever it reads the column `old`."""
    name = new if _is_plain(new) else f"`{new.replace('`', '``')}`"
    tokens = list(_tokens(text))
    pieces, at = [], 0
    for token, after in pairwise(tokens):
        start = token.column - 1
        plain = token.kind == "name" and token.text == old and after.text != "("
        quoted = token.kind == "quoted" and token.text[1:-1].replace("``", "`") == old
        if plain or quoted:
            pieces += [text[at:start], name]
            at = start + len(token.text)
    return "".join([*pieces, text[at:]])


def _is_plain(name: str) -> bool:
    """Returns whether the name needs no quotes. `now` does, as it is refused even without parentheses."""
    taken = name.lower() in _KEYWORDS or name.lower() in NOT_REPEATABLE
    return _PLAIN_NAME.fullmatch(name) is not None and not taken


class _Parser:
    """A recursive descent parser with one method per level of precedence, loosest first."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self, *texts: str) -> _Token | None:
        """Returns the next token if it is one of these keywords or symbols, else None."""
        token = self.next
        if token.kind in ("keyword", "symbol") and token.text in texts:
            self.at += 1
            return token
        return None

    def expect(self, text: str) -> None:
        if self.take(text) is None:
            self.fail(f'expected "{text}"')

    def fail(self, problem: str) -> NoReturn:
        token = self.next
        found = f"found {token.text!r} at character {token.column}" if token.text else "the expression ends"
        raise ExpressionInvalid(f"{problem}, but {found}")

    def whole(self) -> Node:
        node = self.disjunction()
        if self.next.kind != "end":
            self.fail("expected an operator or the end")
        return node

    def disjunction(self) -> Node:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise ExpressionInvalid(f"the expression is nested more than {DEPTH_MAX} deep; split it in two")
        node = self.conjunction()
        while self.take("or"):
            node = Binary("or", node, self.conjunction())
        self.depth -= 1
        return node

    def conjunction(self) -> Node:
        node = self.negation()
        while self.take("and"):
            node = Binary("and", node, self.negation())
        return node

    def negation(self) -> Node:
        turns = 0
        while self.take("not"):
            turns += 1
        node = self.comparison()
        return Not(node) if turns % 2 else node

    def comparison(self) -> Node:
        left = self.sum()
        token = self.take(*_COMPARISONS)
        if token:
            return Binary(token.text, left, self.sum())
        if self.take("is"):
            negated = self.take("not") is not None
            self.expect("null")
            return Not(IsNull(left)) if negated else IsNull(left)
        negated = self.take("not") is not None
        node = self.membership(left)
        if node is None:
            if negated:
                self.fail('expected "in", "between" or "like" after "not"')
            return left
        return Not(node) if negated else node

    def membership(self, left: Node) -> Node | None:
        if self.take("in"):
            self.expect("(")
            return In(left, self.arguments())
        if self.take("between"):
            low = self.sum()
            self.expect("and")
            return Between(left, low, self.sum())
        if self.take("like"):
            pattern = self.sum()
            if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
                raise ExpressionInvalid("like needs a 'pattern' in quotes, % for any text")
            if "\\" in pattern.value:
                raise ExpressionInvalid("a pattern of like has no backslash")
            return Like(left, pattern.value)
        return None

    def sum(self) -> Node:
        node = self.product()
        while token := self.take("+", "-", "||"):
            node = Binary(token.text, node, self.product())
        return node

    def product(self) -> Node:
        node = self.unary()
        while token := self.take("*", "/", "%"):
            node = Binary(token.text, node, self.unary())
        return node

    def unary(self) -> Node:
        turns = 0
        while token := self.take("-", "+"):
            turns += token.text == "-"
        node = self.primary()
        if turns % 2 == 0:
            return node
        if isinstance(node, Literal) and isinstance(node.value, int | float) and node.value is not True:
            return Literal(-node.value)
        return Negative(node)

    def primary(self) -> Node:
        token = self.next
        if token.kind in ("number", "string", "quoted", "name"):
            self.at += 1
            return self.word(token)
        if self.take("("):
            node = self.disjunction()
            self.expect(")")
            return node
        if keyword := self.take("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[keyword.text])
        if self.take("case"):
            return self.case()
        if self.take("cast"):
            return self.cast()
        self.fail("expected a value")

    def word(self, token: _Token) -> Node:
        if token.kind == "number":
            return self.number(token.text)
        if token.kind == "string":
            quote = token.text[0]
            return Literal(token.text[1:-1].replace(quote * 2, quote))
        if token.kind == "quoted":
            return Column(token.text[1:-1].replace("``", "`"))
        if token.text.lower() in NOT_REPEATABLE:
            raise ExpressionInvalid(
                f"{token.text.lower()} gives another value at each run, so a restored element would not"
                " repeat what it did; use _batch_time (the batch's time) or _time (the event's)"
            )
        if not self.take("("):
            return Column(token.text)
        return self.call(token.text.lower())

    def number(self, text: str) -> Literal:
        if not text.isdigit():
            value = float(text)
            if math.isinf(value):
                raise ExpressionInvalid(f"{text} is too large for a number; the largest is 1.79e308")
            return Literal(value)
        if int(text) >= 2**63:
            raise ExpressionInvalid(f"{text} is too large for an integer; write {text}.0")
        return Literal(int(text))

    def call(self, name: str) -> Node:
        function = FUNCTIONS.get(name)
        if function is None:
            hint = did_you_mean(name, FUNCTIONS)
            known = ", ".join(sorted(FUNCTIONS))
            raise ExpressionInvalid(f'there is no function "{name}"{hint} (there are: {known})')
        arguments = () if self.take(")") else self.arguments()
        if not function.arguments_min <= len(arguments) <= function.arguments_max:
            raise ExpressionInvalid(f"{name} is written {function.usage}")
        return Call(name, arguments)

    def arguments(self) -> tuple[Node, ...]:
        """Reads up to the closing parenthesis, and takes that too."""
        found = [self.disjunction()]
        while self.take(","):
            found.append(self.disjunction())
        self.expect(")")
        return tuple(found)

    def case(self) -> Node:
        branches = []
        while self.take("when"):
            condition = self.disjunction()
            self.expect("then")
            branches.append((condition, self.disjunction()))
        if not branches:
            self.fail('expected "when" after "case"')
        otherwise = self.disjunction() if self.take("else") else Literal(None)
        self.expect("end")
        return Case(tuple(branches), otherwise)

    def cast(self) -> Node:
        self.expect("(")
        operand = self.disjunction()
        self.expect("as")
        token = self.next
        self.at += 1
        type_ = CAST_TYPES.get(token.text.lower())
        if type_ is None:
            raise ExpressionInvalid(
                f'"{token.text}" is not a type; there are integer, number, string, boolean, timestamp'
            )
        self.expect(")")
        return Cast(operand, type_)
