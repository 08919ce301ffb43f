"""When an expression has no value although it should have one, as an expression of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions import texts
from pipeline_runtime.operators.expressions.functions import FUNCTIONS
from pipeline_runtime.operators.expressions.syntax import (
    Binary,
    Call,
    Case,
    Cast,
    Column,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    children,
)

# They may have a value where an argument is null, or null where none is.
_LENIENT = ("coalesce", "if", "nullif", "greatest", "least")
FAILING_OPERATORS = ("+", "-", "*", "/", "%")
INFINITY = Literal(float("inf"))


def failed(node: Node, type_: FieldType) -> Node | None:
    """True, and never null, where the expression of that type has failed: a division by zero, an overflow, a
    text that is no number, or a number that JSON does not have. A null input is not a failure. None: it
    cannot fail."""
    failures = _failures(node)
    if type_ is FieldType.NUMBER and not isinstance(node, Column | Literal):
        size = Call("abs", (Cast(node, FieldType.NUMBER),))
        failures = [*failures, _sure(Not(Binary("<", size, INFINITY)), False)]
    return reduce(_or, dict.fromkeys(failures)) if failures else None


def _failures(node: Node) -> list[Node]:
    """Conditions, one per part that may fail; a part that is not evaluated does not fail."""
    match node:
        case Binary("and" | "or" as operator, left, right):
            # The right side counts only where the left one does not decide alone.
            open_ = _sure(left if operator == "and" else Not(left), True)
            return [*_failures(left), *_guarded(open_, _failures(right))]
        case Case(branches, otherwise):
            return _case_failures(branches, otherwise)
        case Call("if", (condition, first, second)):
            return _case_failures(((condition, first),), second)
        case Call("coalesce", arguments):
            found: list[Node] = []
            for index, argument in enumerate(arguments):
                before = [IsNull(earlier) for earlier in arguments[:index]]
                failures = _failures(argument)
                found += _guarded(_all(before), failures) if before else failures
            return found
    if not _strict(node):
        return [condition for child in children(node) for condition in _failures(child)]
    # A tree of strict parts is null only if something it rests on is null, or if it failed: one
    # condition for all of it, so that the SQL does not grow with the square of the expression.
    grounds, may_fail = _grounds(node)
    found = [condition for ground in grounds for condition in _failures(ground)]
    if may_fail:
        given = [Not(IsNull(ground)) for ground in dict.fromkeys(grounds)]
        found.append(_all([IsNull(node), *given]))
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
            return operator in FAILING_OPERATORS or texts.is_guarded(node)
        case Call(name, _):
            return FUNCTIONS[name].may_fail or texts.is_guarded(node)
        case Cast(_, target):
            return target is not FieldType.STRING
        case Negative(_):
            return True
        case _:
            return False


def _case_failures(branches: Iterable[tuple[Node, Node]], otherwise: Node) -> list[Node]:
    found: list[Node] = []
    undecided: list[Node] = []
    for condition, value in branches:
        taken = _sure(condition, False)
        found += _guarded(_all(undecided), _failures(condition))
        found += _guarded(_all([*undecided, taken]), _failures(value))
        undecided.append(Not(taken))
    return [*found, *_guarded(_all(undecided), _failures(otherwise))]


def _guarded(condition: Node, failures: Iterable[Node]) -> list[Node]:
    return [Binary("and", condition, failure) for failure in failures]


def _sure(condition: Node, instead: bool) -> Node:
    """Not null."""
    return Call("coalesce", (condition, Literal(instead)))


def _all(conditions: Sequence[Node]) -> Node:
    return reduce(lambda one, other: Binary("and", one, other), conditions) if conditions else Literal(True)


def _or(one: Node, other: Node) -> Node:
    return Binary("or", one, other)
