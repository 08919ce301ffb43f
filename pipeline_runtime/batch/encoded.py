"""Rows that a task encodes as Kafka's batches, so that its agent need only send them.

An agent commits for all groups of its node, and one thread at a time runs Python there. What its tasks do
instead, they do side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.kafka.arrow_batches import BODY_BYTES_MAX, TIME_MS, Rows, compressed, encoded
from pipeline_runtime.kafka.record_batches import Body

BODIES = pa.schema(
    [
        ("data", pa.binary()),
        ("count", pa.int64()),
        ("newest_ms", pa.int64()),
        ("is_packed", pa.bool_()),
        ("rows_bytes", pa.int64()),
    ]
)
"""Encoded rows: a row for each of Kafka's batches. `rows_bytes`: what its rows take as columns."""


def with_bodies(output: BatchOutput, streams: Collection[str]) -> BatchOutput:
    """The output, with the rows of these streams encoded. Rows without a time stay as they are: the agent
    gives them one."""
    rows, bodies = dict(output.rows), {}
    for source in streams:
        table = rows.get(source)
        if table is not None and not table[TIME_MS].null_count:
            bodies[source] = _table_of(Rows.of(rows.pop(source), 0))
    return replace(output, rows=rows, bodies=bodies)


def _table_of(rows: Rows) -> pa.Table:
    each = rows.bytes // len(rows)
    made = [compressed(body) for body in encoded(rows, BODY_BYTES_MAX)]
    lines = [(body.data, body.count, body.newest_ms, body.is_packed, body.count * each) for body in made]
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*lines, strict=True), BODIES, strict=True)
    ]
    return pa.table(columns, schema=BODIES)


def bodies_in(table: pa.Table) -> Sequence[Body]:
    """The encoded rows that `with_bodies` has made a table of."""
    data = [value.as_buffer() for chunk in table["data"].chunks for value in chunk]
    told = zip(*(table[name].to_pylist() for name in BODIES.names[1:4]), strict=True)
    return [
        Body(memoryview(each), count, newest_ms, newest_ms, is_columns=True, is_packed=is_packed)
        for each, (count, newest_ms, is_packed) in zip(data, told, strict=True)
    ]
