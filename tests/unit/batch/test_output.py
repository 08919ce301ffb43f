"""Tests the output of a batch: after the transfer from tasks, and joined from several tasks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.decode import TIMESTAMP
from pipeline_runtime.batch.output import (
    LETTERS,
    BatchOutput,
    Destinations,
    OutputBuilder,
    merged,
    packed,
    unpacked,
)
from pipeline_runtime.batch.reader import conformed
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema

SCHEMA = StreamSchema(
    fields=(
        Field(name="n", type=FieldType.INTEGER),
        Field(name="x", type=FieldType.NUMBER),
        Field(name="y", type=FieldType.NUMBER),
        Field(name="s", type=FieldType.STRING),
    )
)
BOTH = Destinations({"a.out": SCHEMA}, topics=frozenset({"a.out"}), sinks=frozenset({"a.out"}))


def rows(*values: tuple[Any, Any, Any, Any]) -> pa.Table:
    """Rows in types that an operator may give, and Fogline's own are not."""
    columns = zip(*values, strict=True) if values else [[], [], [], []]
    types = (pa.int32(), pa.float32(), pa.int64(), pa.string())
    table = pa.table(
        [pa.array(each, type_) for each, type_ in zip(columns, types, strict=True)], names=SCHEMA.names
    )
    table = table.set_column(3, "s", table["s"].dictionary_encode())
    count = table.num_rows
    times = pa.array(range(1_500, 1_500 + count), TIMESTAMP)
    return table.append_column("_key", pa.array(["k"] * count, pa.string())).append_column("_time", times)


def output_of(*values: tuple[Any, Any, Any, Any]) -> BatchOutput:
    builder = OutputBuilder(BOTH)
    builder.add("a.out", conformed(rows(*values), SCHEMA))
    return builder.output()


def test_columns_of_other_types_are_written_as_the_schema_says() -> None:
    made = output_of((1, 0.5, 2, "a"), (None, None, None, None))
    assert made.records["a.out"].to_pylist() == [
        {"key": "k", "time_ms": 1, "value": '{"n":1,"x":0.5,"y":2.0,"s":"a"}'},
        {"key": "k", "time_ms": 1, "value": '{"n":null,"x":null,"y":null,"s":null}'},
    ]
    assert made.sinks["a.out"]["s"].to_pylist() == ["a", None]


def test_what_several_tasks_have_made_is_one_batch_also_if_one_had_no_rows() -> None:
    parts = [output_of((1, 0.5, 2, "a")), output_of(), output_of((3, 1.5, 4, "b"))]
    made = merged(unpacked(bytes(packed(part))) for part in parts)
    assert made.counts == {"a.out": 2}
    assert made.sinks["a.out"]["n"].to_pylist() == [1, 3]
    assert [row["value"][:7] for row in made.records["a.out"].to_pylist()] == ['{"n":1,', '{"n":3,']


def test_a_batch_without_rows_has_no_records_and_sinks_that_are_typed() -> None:
    made = merged([output_of(), output_of()])
    assert made.records == {}
    assert made.sinks["a.out"].schema.field("x").type == pa.float64()
    assert made.letters.equals(LETTERS.empty_table())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_a_dead_letter_wherever_the_stream_goes(bad: float) -> None:
    for destinations in (BOTH, Destinations({"a.out": SCHEMA}, frozenset(), frozenset())):
        builder = OutputBuilder(destinations)
        good = builder.add("a.out", conformed(rows((1, 0.5, 2, "a"), (2, bad, 2, "b")), SCHEMA))
        assert good["n"].to_pylist() == [1]
        [letter] = builder.output().letters.to_pylist()
        assert letter["element"] == "a"
        assert "which JSON does not have" in letter["reason"]
