"""Rows that a task encodes are those that it has made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_runtime.batch.encoded import bodies_in, with_bodies
from pipeline_runtime.batch.output import LETTERS, BatchOutput, merged, packed, unpacked
from pipeline_runtime.kafka.arrow_batches import FAST_ROWS_MIN, KEY, ROWS_MIN, TIME_MS, Rows, rows_of
from pipeline_runtime.kafka.limits import TopicLimits
from pipeline_runtime.kafka.record_batches import Columns
from pipeline_runtime.kafka.transactions import OutgoingBodies, OutgoingRows
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, OutputStream
from pipeline_runtime.replica.outputs import outgoing

SPEC = GroupSpec(
    deployment="d",
    pipeline="p",
    group="g",
    elements=(ElementSpec(id="a", type="filter"),),
    outputs=(OutputStream(source="a.out", topic="fl.d.a.out", data_schema=StreamSchema(fields=())),),
)


def made(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "n": pa.array(numbers, pa.int64()),
        "text": pa.array([f"t{n % 9}" for n in numbers]),
        KEY: pa.array([None if n % 4 else f"k{n % 7}" for n in numbers], pa.string()),
        TIME_MS: pa.array([1_700_000_000_000 + n for n in numbers], pa.int64()),
    }
    return pa.table(columns)


def output(**rows: pa.Table) -> BatchOutput:
    return BatchOutput({}, {}, LETTERS.empty_table(), {}, {f"{id}.out": table for id, table in rows.items()})


def assert_same_rows(found: Rows, expected: Rows) -> None:
    assert found.fields.combine_chunks().equals(expected.fields.combine_chunks())
    assert found.keys.equals(expected.keys)
    assert np.array_equal(found.times_ms, expected.times_ms)


@pytest.mark.parametrize("count", [ROWS_MIN, FAST_ROWS_MIN, 30_000])
def test_rows_that_tasks_have_encoded_come_through_the_gate(count: int) -> None:
    parts = [with_bodies(output(a=made(count, n * count), b=made(9)), {"a.out", "c.out"}) for n in range(2)]
    found = merged(unpacked(bytes(packed(part))) for part in parts)
    assert list(found.rows) == ["b.out"]
    bodies, at = bodies_in(found.bodies["a.out"]), 0
    assert {body.is_packed for body in bodies} == {count >= FAST_ROWS_MIN}
    for body in bodies:
        assert_same_rows(rows_of(body), Rows.of(made(body.count, at), 0))
        at += body.count
    assert at == 2 * count


def test_rows_without_a_time_are_left_to_the_agent() -> None:
    table = made(ROWS_MIN).drop_columns([TIME_MS]).append_column(TIME_MS, pa.nulls(ROWS_MIN, pa.int64()))
    assert with_bodies(output(a=table), {"a.out"}).rows == {"a.out": table}


@pytest.mark.parametrize(
    ("limits", "is_encoded"), [(TopicLimits(), True), (TopicLimits(batch_bytes=1_000), False)]
)
def test_encoded_rows_leave_as_they_are_unless_their_topic_would_refuse_them(
    limits: TopicLimits, is_encoded: bool
) -> None:
    given = output(a=made(FAST_ROWS_MIN))
    as_rows, encoded = (
        outgoing(SPEC, each, [], ending=False, limits=lambda _: limits, now_ms=1_700_000_000_000)
        for each in (given, with_bodies(given, {"a.out"}))
    )
    assert (encoded.rows_out, encoded.dead_letters) == (FAST_ROWS_MIN, {})
    assert encoded.stream_bytes["a.out"] == pytest.approx(as_rows.stream_bytes["a.out"], rel=0.05)
    [record] = encoded.records
    assert isinstance(record, OutgoingBodies) is is_encoded
    if not is_encoded:
        assert values_of(record) == values_of(as_rows.records[0])


def values_of(record: Any) -> list[bytes]:
    assert isinstance(record, OutgoingRows)
    assert isinstance(record.columns, Columns)
    found: list[bytes] = record.columns.values.to_pylist()
    return found
