"""Writes the rows of a batch for users' topics, in the formats of these topics.

Elements make rows as JSON. What a topic is to have instead is made here, once, before the rows leave the
task or the batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.output import LETTERS, RECORDS, BatchOutput
from pipeline_runtime.formats.malformed import Unwritable
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError
from pipeline_runtime.formats.writing import RowWriter, row_writer
from pipeline_runtime.model.spec import GroupSpec, OutputStream

HEADERS = "headers"
"""A column of records that have headers: those of each, as names and values."""
WRITTEN = pa.schema(
    [
        RECORDS.field("key"),
        RECORDS.field("time_ms"),
        ("value", pa.binary()),
        (HEADERS, pa.map_(pa.string(), pa.binary())),
    ]
)
"""The records of a stream that has another format than JSON, or headers."""


def as_written(output: BatchOutput, spec: GroupSpec, registries: Registries) -> BatchOutput:
    """Returns the output with the records of users' topics as these topics have them. A row that its format
    does not take is a dead letter. Raises SchemaRegistryError."""
    for stream in spec.outputs:
        records = output.records.get(stream.source)
        if stream.writing is not None and records is not None and records.num_rows:
            output = _written(output, stream, records, registries)
    return output


def _written(
    output: BatchOutput, stream: OutputStream, records: pa.Table, registries: Registries
) -> BatchOutput:
    assert stream.writing is not None
    writer = row_writer(stream.writing, stream.data_schema)
    is_json = stream.writing.format is None
    try:
        prefix = writer.prefix(registries)
    except SchemaRegistryError as error:
        raise SchemaRegistryError(f"The rows for the topic {stream.topic} wait: {error}") from error
    found: list[tuple[Any, ...]] = []
    letters: list[dict[str, Any]] = []
    for key, time_ms, text in zip(*(records[name].to_pylist() for name in RECORDS.names), strict=True):
        try:
            value, headers = _record(text, writer, is_json=is_json)
            found.append((key, time_ms, prefix + value, headers))
        except Unwritable as error:
            letters.append(
                {
                    "element": stream.source.partition(".")[0],
                    "reason": str(error),
                    "raw": text,
                    "key": key,
                    "time_ms": time_ms,
                }
            )
    columns: list[Sequence[Any]] = [*zip(*found, strict=True)] or [()] * len(WRITTEN)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, WRITTEN, strict=True)]
    table = pa.table(arrays, schema=WRITTEN)
    told = pa.concat_tables([output.letters, pa.Table.from_pylist(letters, LETTERS)])
    counts = dict(output.counts)
    if stream.source in counts:
        counts[stream.source] -= len(letters)
    return replace(output, records={**output.records, stream.source: table}, letters=told, counts=counts)


def _record(text: str, writer: RowWriter, *, is_json: bool) -> tuple[bytes, list[tuple[str, bytes]]]:
    row = json.loads(text)
    return text.encode() if is_json else writer.value(row), list(writer.headers(row))
