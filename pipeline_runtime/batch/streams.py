"""The streams within a group: which leave it, and a processor's rows for what stands behind it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.decode import TIMESTAMP, decode
from pipeline_runtime.batch.inputs import operator_of
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import SinkOperator


def sink_streams(spec: GroupSpec) -> dict[str, str]:
    """Sink element -> the stream ("element.port") that it writes."""
    return {
        item.id: item.inputs["in"]
        for item in spec.elements
        if isinstance(operator_of(spec, item.id), SinkOperator)
    }


def needed_streams(spec: GroupSpec) -> frozenset[str]:
    """That leave the query: into a topic or into a sink of the group."""
    return frozenset({output.source for output in spec.outputs} | set(sink_streams(spec).values()))


def behind(spec: GroupSpec, element: str | None) -> tuple[str, ...]:
    """The elements that stand behind that one, in topological order. Sinks are no part of a query: they are
    handed the rows of their stream."""
    found: list[str] = []
    for item in spec.elements:
        sources = {source.partition(".")[0] for source in item.inputs.values()}
        is_behind = element is not None and bool(sources & {element, *found})
        if is_behind and not isinstance(operator_of(spec, item.id), SinkOperator):
            found.append(item.id)
    return tuple(found)


def rows_of(collected: pa.Table, source: str, spec: GroupSpec) -> tuple[pa.Table, pa.Table]:
    """One stream's rows as they were collected (batch.rows.TAGGED), and what is in them, row by row.

    A row that does not fit its schema (an operator that made infinity) is in neither: whoever reads
    the stream's topic rejects it as well, and the batch must not fail of it.
    """
    rows = collected.filter(pc.equal(collected["_out"], source))
    decoded = decode(rows["_value"].cast(pa.binary()).to_pylist(), spec.schemas[source])
    if decoded.kept is not None:
        rows = rows.take(pa.array(decoded.kept, pa.int64()))
    return rows, decoded.columns


def times_of(rows: pa.Table) -> pa.ChunkedArray:
    return rows["_time_ms"].cast(pa.timestamp("ms", tz="UTC")).cast(TIMESTAMP)


def read_again(collected: pa.Table, source: str, spec: GroupSpec, batch_time_ms: int) -> pa.Table:
    """A processor's rows with the columns of the frames that an operator is given (see operators.sdk)."""
    rows, table = rows_of(collected, source, spec)
    count = rows.num_rows
    meta = {
        "_key": rows["_key"],
        "_time": times_of(rows),
        "_batch_time": pa.repeat(pa.scalar(batch_time_ms * 1000, pa.int64()), count).cast(TIMESTAMP),
        "_partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "_offset": pa.array(range(count), pa.int64()),
    }
    for name, values in meta.items():
        table = table.append_column(name, values)
    return table
