"""The columns of the gated source: an envelope, and each input's own fields beside it.

Spark reads one source with one schema for all inputs of a group, so each input has columns of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pipeline_runtime.batch.decode import ARROW_TYPES, TIMESTAMP
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.model.schema import StreamSchema

# `_input`: which input the row is of. `_flush`: the row has no data, it only moves the watermark.
ENVELOPE = pa.schema(
    [
        ("_input", pa.int32()),
        ("_key", pa.string()),
        ("_time", TIMESTAMP),
        ("_batch_time", TIMESTAMP),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_flush", pa.bool_()),
    ]
)
# Further than any window reaches: the watermark that it leaves closes them all.
_FLUSH_TIME = datetime(2200, 1, 1, tzinfo=UTC)


def column(input_index: int, field: str) -> str:
    """Each input's fields have their own columns, null in the rows of the other inputs."""
    return f"i{input_index}_{field}"


def source_schema(schemas: Sequence[StreamSchema]) -> pa.Schema:
    fields = list(ENVELOPE)
    for index, schema in enumerate(schemas):
        fields += [pa.field(column(index, field.name), ARROW_TYPES[field.type]) for field in schema.fields]
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark's types; a timestamp is an instant."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def enveloped(rows: pa.Table, item: GroupInput, schema: pa.Schema) -> Sequence[pa.RecordBatch]:
    """One input's rows with the columns of `schema`; those of the other inputs are null."""
    count = rows.num_rows
    values = {name: rows[name] for name in ENVELOPE.names if name in rows.column_names}
    values |= {column(item.index, name): rows[name] for name in item.schema.names}
    values["_input"] = pa.repeat(pa.scalar(item.index, pa.int32()), count)
    values["_flush"] = pa.repeat(pa.scalar(False), count)
    return _batches(values, schema, count)


def flush_rows(inputs: int, batch_time_ms: int, schema: pa.Schema) -> Sequence[pa.RecordBatch]:
    """A row for each input that closes all windows."""
    values = {
        "_input": pa.array(range(inputs), pa.int32()),
        "_time": pa.repeat(pa.scalar(_FLUSH_TIME, TIMESTAMP), inputs),
        "_batch_time": pa.repeat(pa.scalar(batch_time_ms * 1000, pa.int64()), inputs).cast(TIMESTAMP),
        "_partition": pa.repeat(pa.scalar(-1, pa.int32()), inputs),
        "_offset": pa.repeat(pa.scalar(-1, pa.int64()), inputs),
        "_flush": pa.repeat(pa.scalar(True), inputs),
    }
    return _batches(values, schema, inputs)


def _batches(values: dict[str, pa.Array], schema: pa.Schema, count: int) -> Sequence[pa.RecordBatch]:
    columns = [values.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.table(columns, schema=schema).combine_chunks().to_batches()  # type: ignore[no-any-return]
