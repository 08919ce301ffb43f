"""Fogline's transforms in Spark's Python processes: what they are handed, and what they hand on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import OperatorContext
from pipeline_runtime.spark.in_arrow import META, transformed
from tests.unit.operators.conftest import schema_of, table

NUMBERS = schema_of(key="n", n="integer", x="number")
TURNED = schema_of(key="n", x="number", n="integer")


def test_each_batch_is_given_by_ports_and_comes_back_with_all_columns_of_the_output() -> None:
    merge = default_registry().create("merge", {})
    schemas = {"in1": NUMBERS, "in2": TURNED}
    context = OperatorContext("e", merge.output_schema(schemas), schemas, Path(), Path)
    batches = []
    for place, (schema, rows) in enumerate([(NUMBERS, [(0, 1, 0.5), (1, 2, 1.5)]), (TURNED, [(2, 2.5, 3)])]):
        arrived = table(schema, rows)
        columns = {f"i{place}_{name}": arrived[name] for name in schema.names}
        other = {f"i{1 - place}_n": pa.nulls(len(rows), pa.int64())}
        other[f"i{1 - place}_x"] = pa.nulls(len(rows), pa.float64())
        meta = {name: arrived[name] for name in META}
        port = pa.array([place] * len(rows), pa.int32())
        both = pa.table({"_port": port, **meta, **columns, **other})
        batches += both.combine_chunks().to_batches()
    made = pa.Table.from_batches(list(transformed(merge, ("in1", "in2"), context, iter(batches))))
    assert made.select(["n", "x", "_key"]).to_pylist() == [
        {"n": 1, "x": 0.5, "_key": "1"},
        {"n": 2, "x": 1.5, "_key": "2"},
        {"n": 3, "x": 2.5, "_key": "3"},
    ]
    assert made["_reject"].null_count == 3


def test_a_rejected_row_says_why() -> None:
    derive = default_registry().create("derive", {"columns": [{"name": "r", "expression": "1 / n"}]})
    context = OperatorContext("e", derive.output_schema({"in": NUMBERS}), {"in": NUMBERS}, Path(), Path)
    arrived = table(NUMBERS, [(0, 0, 1.0), (1, 4, 1.0)])
    columns = {f"i0_{name}": arrived[name] for name in NUMBERS.names}
    meta = {name: arrived[name] for name in META}
    rows = pa.table({"_port": pa.array([0, 0], pa.int32()), **meta, **columns}).combine_chunks()
    [made] = transformed(derive, ("in",), context, iter(rows.to_batches()))
    assert [(row["r"], row["_reject"] is None) for row in made.to_pylist()] == [(None, False), (0.25, True)]
