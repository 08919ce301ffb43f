"""Transform: the rows of several streams as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, Port, TransformOperator


class MergeParams(Params):
    """Merge has no parameters."""


class Merge(TransformOperator):
    """Gives the rows of up to four streams as one stream, for example those of several machines, rooms or
    sites.

    To merge more streams, merge merged streams. The element passes on a single stream as it is, so you can
    add and remove streams while it runs.

    All streams have the same columns, in any order, and the same key. The rows of one stream stay in their
    order. The order of rows of different streams depends on when they arrive. A window after a merge does not
    wait for a slow stream: a row is too late if it is further behind the newest row of any stream than the
    window's delay.
    """

    type = "merge"
    title = "Merge"
    summary = "Brings the rows of several streams into one stream"
    category = "join"
    icon = "git-merge"
    Params = MergeParams
    inputs = (
        Port("in1"),
        Port("in2", optional=True),
        Port("in3", optional=True),
        Port("in4", optional=True),
    )
    example = {}

    params: MergeParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {port: same_row(made, named(schema.names)) for port, schema in inputs.items()}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        first = inputs["in1"]
        with SchemaCheck() as check:
            for port, schema in inputs.items():
                for difference in _differences(first, schema):
                    check.fail(f"inputs.{port}", difference)
        return first

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        def merged(inputs: Mapping[str, pa.Table]) -> pa.Table:
            first, *_ = inputs.values()
            return pa.concat_tables([rows.select(first.column_names) for rows in inputs.values()])

        return merged


def _differences(first: StreamSchema, other: StreamSchema) -> Iterator[str]:
    """Yields sentences on why the rows of both cannot be one stream."""
    for field in first.fields:
        there = other.field(field.name)
        if there is None:
            yield f'it has no column "{field.name}", which in1 has'
        elif there.type != field.type:
            yield f'"{field.name}" is {there.type.words}, and {field.type.words} in in1'
    for name in other.names:
        if first.field(name) is None:
            yield f'in1 has no column "{name}"'
    if other.key != first.key:
        yield f"its key is {_key(other)}, that of in1 is {_key(first)}"


def _key(schema: StreamSchema) -> str:
    return f'"{schema.key}"' if schema.key is not None else "none"
