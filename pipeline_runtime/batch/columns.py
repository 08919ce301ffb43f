"""The columns of the gated source: an envelope, and each input's own fields beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pipeline_runtime.batch.decode import ARROW_TYPES, TIMESTAMP
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


def column(input_index: int, field: str) -> str:
    """Each input's fields have their own columns, null in the rows of the other inputs."""
    return f"i{input_index}_{field}"


def source_schema(schemas: Sequence[StreamSchema]) -> pa.Schema:
    fields = list(ENVELOPE)
    for index, schema in enumerate(schemas):
        fields += [pa.field(column(index, field.name), ARROW_TYPES[field.type]) for field in schema.fields]
    return pa.schema(fields)
