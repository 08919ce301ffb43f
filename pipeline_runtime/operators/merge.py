"""Transform: the rows of several streams as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, Port, TransformOperator
from pipeline_runtime.operators.tables import with_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class MergeParams(Params):
    """There are none."""


class Merge(TransformOperator):
    """Gives the rows of up to four streams as one stream: of several machines, rooms or sites, each with an
    element of its own. For more streams merge the merged. One alone is passed on, so that streams may come
    and go while it runs.

    All have the same columns, in whatever order, and the same key. Rows of one stream stay in its order; how
    those of different streams follow each other depends on when they come. A window behind it waits for no
    stream: what comes later than the window's delay, measured by the stream that is furthest, is too late.
    """

    type = "merge"
    title = "Merge"
    summary = "Gives the rows of several streams as one"
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

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        first = inputs["in1"]
        with SchemaCheck() as check:
            for port, schema in inputs.items():
                for difference in _differences(first, schema):
                    check.fail(f"inputs.{port}", difference)
        return first

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        from pyspark.sql import functions as F

        frames = [
            frame.withColumn("_partition", F.col("_partition") * len(self.inputs) + _place(port))
            for port, frame in inputs.items()
        ]
        return reduce(lambda merged, frame: merged.unionByName(frame), frames)

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        def merged(inputs: Mapping[str, pa.Table]) -> pa.Table:
            first, *_ = inputs.values()
            tables = []
            for port, rows in inputs.items():
                apart = pc.multiply(rows["_partition"], pa.scalar(len(self.inputs), pa.int32()))
                apart = pc.add(apart, pa.scalar(_place(port), pa.int32()))
                tables.append(with_column(rows, "_partition", apart).select(first.column_names))
            return pa.concat_tables(tables)

        return merged


def _place(port: str) -> int:
    """No two streams have a partition in common: by their offsets, the rows of one would be taken for earlier
    than the other's, and where a window or a join stands behind it in the same group, those for late."""
    return [each.name for each in Merge.inputs].index(port)


def _differences(first: StreamSchema, other: StreamSchema) -> Iterator[str]:
    """Why the rows of both cannot be one stream's, each in words."""
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
