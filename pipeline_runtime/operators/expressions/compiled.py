"""An expression that was checked over a stream, ready to be evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.expressions import texts
from pipeline_runtime.operators.expressions.syntax import ExpressionInvalid, Node, parse
from pipeline_runtime.operators.expressions.types import column_types, type_of


@dataclass(frozen=True)
class Compiled:
    """`tables.evaluated` gives its value for each row of the stream."""

    type: FieldType
    node: Node


def compile_expression(text: str, schema: StreamSchema) -> Compiled:
    """Checks an expression over a stream; raises ExpressionInvalid."""
    node = parse(text)
    found = type_of(node, column_types(schema))
    if found is None:
        raise ExpressionInvalid("the expression is always null, so it has no type; write cast(null as ...)")
    texts.check(node)
    return Compiled(found, node)
