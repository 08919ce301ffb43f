"""The rows of a batch that Spark has run: one table, each row with a tag that says where it goes.

| column | type | |
|---|---|---|
| `_out` | string | "element.port", or "element.dead" for a rejected row |
| `_key` | string | the record's key |
| `_time_ms` | long | event time |
| `_value` | string | the record as JSON; of a rejected row `{"reason", "raw", "partition", "offset"}` |
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.decode import TIMESTAMP, decode
from pipeline_runtime.batch.output import LETTERS, RECORDS, BatchOutput, Destinations, OutputBuilder
from pipeline_runtime.batch.reader import with_meta
from pipeline_runtime.batch.rows import Processed
from pipeline_runtime.batch.streams import sink_streams
from pipeline_runtime.model.ids import DEAD
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec

TAGGED = pa.schema(
    [("_out", pa.string()), ("_key", pa.string()), ("_time_ms", pa.int64()), ("_value", pa.string())]
)


def tagged(element: str, made: Processed, schema: StreamSchema) -> pa.Table:
    """What a processor has made."""
    source = f"{element}.out"
    builder = OutputBuilder(Destinations({source: schema}, frozenset({source}), frozenset()))
    builder.reject(element, made.letters)
    builder.add(source, made.rows)
    output = builder.output()
    said = output.letters.drop_columns(["element"]).to_pylist()
    values = [json.dumps(letter, ensure_ascii=False) for letter in said]
    count, no_time_ms = len(values), 0  # the broker sets the time of a dead letter
    letters = [[f"{element}.{DEAD}"] * count, pa.nulls(count, pa.string()), [no_time_ms] * count, values]
    tables = [pa.table(letters, schema=TAGGED)]
    if (records := output.records.get(source)) is not None:
        tables.insert(0, pa.table([pa.repeat(source, records.num_rows), *records.columns], schema=TAGGED))
    return pa.concat_tables(tables)


def output_of(collected: pa.Table, spec: GroupSpec) -> BatchOutput:
    """The tagged rows of a batch as records, rows for sinks, and dead letters."""
    counted = pc.value_counts(collected["_out"].combine_chunks()).to_pylist()
    counts = {item["values"]: item["counts"] for item in counted}
    letters: dict[str, list[Any]] = {name: [] for name in LETTERS.names}
    for element in spec.elements:
        for text in _tagged_as(f"{element.id}.{DEAD}", collected)["_value"].to_pylist():
            letter = json.loads(text)
            for name in LETTERS.names:
                letters[name].append(element.id if name == "element" else letter.get(name))
    records = {}
    for output in spec.outputs:
        rows = _tagged_as(output.source, collected)
        records[output.source] = rows.select(["_key", "_time_ms", "_value"]).rename_columns(RECORDS.names)
        counts.setdefault(output.source, 0)
    sinks = {}
    for source in set(sink_streams(spec).values()):
        rows, columns = _read_again(collected, source, spec)
        sinks[source] = columns.append_column("_time", _times(rows))
    return BatchOutput(records, sinks, pa.table(letters, schema=LETTERS), counts)


def stream_of(collected: pa.Table, source: str, spec: GroupSpec, batch_time_ms: int) -> pa.Table:
    """One stream's rows with the columns of the frames that an operator is given (see operators.sdk)."""
    rows, columns = _read_again(collected, source, spec)
    columns = columns.append_column("_key", rows["_key"]).append_column("_time", _times(rows))
    return with_meta(columns, batch_time_ms)


def _read_again(collected: pa.Table, source: str, spec: GroupSpec) -> tuple[pa.Table, pa.Table]:
    """One stream's rows as they were collected, and what is in them, row by row.

    A row that does not fit its schema (an operator that made infinity) is in neither: whoever reads
    the stream's topic rejects it as well, and the batch must not fail of it.
    """
    rows = _tagged_as(source, collected)
    decoded = decode(rows["_value"].cast(pa.binary()).combine_chunks(), spec.schemas[source])
    if decoded.kept is not None:
        rows = rows.take(pa.array(decoded.kept, pa.int64()))
    return rows, decoded.columns


def _tagged_as(tag: str, collected: pa.Table) -> pa.Table:
    return collected.filter(pc.equal(collected["_out"], tag))


def _times(rows: pa.Table) -> pa.ChunkedArray:
    return rows["_time_ms"].cast(pa.timestamp("ms", tz="UTC")).cast(TIMESTAMP)
