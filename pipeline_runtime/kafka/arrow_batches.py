"""Many rows of one of Fogline's own topics as columns, in one of Kafka's batches.

Each row has an offset of its own, as a record has. The first record of the batch holds all rows. Each other
record is empty, and stands only for its row's offset. So positions, lag and retention count rows as ever, and
a group's batch may begin and end at any row: a broker always gives whole batches.

All records of such a batch have the time of its newest row. Each row's own time and key lie beside its
fields.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint, encode_varint
from numpy.typing import NDArray

from pipeline_runtime.kafka.json_rows import json_texts
from pipeline_runtime.kafka.narrow import packed_parts, unpacked
from pipeline_runtime.kafka.record_batches import Body, Columns, body_of
from pipeline_runtime.kafka.unpacking import unpack, zstd_of_thread
from pipeline_runtime.model.ids import OWN_TOPICS
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema

HEADER = "fogline-arrow"
"""The header of a record that holds the rows of its batch."""
ROWS_MIN = 50
"""Fewer rows go as JSON, which then has fewer bytes."""
ROWS_MAX = 10_000
ROW_BYTES_MAX = 16 * 1024
"""A row with longer texts goes as JSON, where Kafka's limits are checked for each record."""

BODY_BYTES_MAX = 512 * 1024
"""No batch of several rows has more bytes before it is compressed. Kafka's own limit is 1 MiB."""

FAST_ROWS_MIN = 1000
"""From so many rows in columns on, zstd's level 1 leaves as few bytes as the usual level 3, and takes half of
its CPU (docs/decisions/0033-compressed-streams.md)."""
_FAST_LEVEL = 1

KEY, TIME_MS = "_key", "_time_ms"
_AROUND_BYTES = 10  # an empty record, at most
_NARROWED = 2  # so many times smaller rows mostly become at least; else the first batch is cut in two
_NULL = 1  # as a varint: -1


def _varint(number: int) -> bytes:
    made = bytearray()
    encode_varint(number, made.append)
    return bytes(made)


_TAIL = _varint(1) + _varint(len(HEADER)) + HEADER.encode() + bytes([_NULL])
"""How a record ends that has this header."""


def _empty_records() -> tuple[bytes, list[int]]:
    """Returns ROWS_MAX - 1 empty records for the offsets from 1, and where each ends."""
    data, ends = bytearray(), [0]
    for offset in range(1, ROWS_MAX):
        record = b"\0\0" + _varint(offset) + bytes([_NULL, _NULL, 0])
        data += _varint(len(record)) + record
        ends.append(len(data))
    return bytes(data), ends


_EMPTY, _EMPTY_ENDS = _empty_records()


@dataclass(frozen=True)
class Rows:
    """Rows of a stream, in order. All columns have the same length."""

    keys: pa.BinaryArray
    times_ms: NDArray[np.int64]
    fields: pa.Table

    @staticmethod
    def of(table: pa.Table, now_ms: int) -> Rows:
        """The rows of a table of fields, KEY and TIME_MS. One without a time gets `now_ms`."""
        times = table[TIME_MS]
        times_ms = (times.fill_null(now_ms) if times.null_count else times).to_numpy()
        return Rows(
            table[KEY].cast(pa.binary()).combine_chunks(), times_ms, table.drop_columns([KEY, TIME_MS])
        )

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, begin: int, end: int) -> Rows:
        count = end - begin
        fields = self.fields.slice(begin, count)
        return Rows(self.keys.slice(begin, count), self.times_ms[begin:end], fields)

    def take(self, places: NDArray[np.int64]) -> Rows:
        chosen = pa.array(places)
        return Rows(self.keys.take(chosen), self.times_ms[places], self.fields.take(chosen))

    @property
    def bytes(self) -> int:
        return int(self.fields.nbytes + self.keys.nbytes + self.times_ms.nbytes)

    def as_json(self) -> Columns:
        """Returns a record for each row, whose value is the row as a JSON object."""
        texts = json_texts(self.fields, schema_of(self.fields.schema)).cast(pa.binary()).combine_chunks()
        return Columns(self.keys, texts, self.times_ms)


def schema_of(columns: pa.Schema) -> StreamSchema:
    return StreamSchema(fields=tuple(Field(name=each.name, type=_field_type(each.type)) for each in columns))


def _field_type(type_: pa.DataType) -> FieldType:
    if pa.types.is_integer(type_):
        return FieldType.INTEGER
    if pa.types.is_floating(type_):
        return FieldType.NUMBER
    if pa.types.is_boolean(type_):
        return FieldType.BOOLEAN
    return FieldType.TIMESTAMP if pa.types.is_timestamp(type_) else FieldType.STRING


def largest_row_bytes(fields: pa.Table) -> int:
    """Returns how many bytes the texts of one row have at most: the longest one of each column."""
    texts = [each for each in fields.columns if each.type in (pa.string(), pa.binary())]
    return sum(pc.max(pc.binary_length(each)).as_py() or 0 for each in texts)


# -- written -----------------------------------------------------------------------------------------


def encoded(rows: Rows, bytes_max: int) -> list[Body]:
    """Returns the rows as batches of some `bytes_max` bytes before they are compressed, with at least one
    row. None has more than BODY_BYTES_MAX."""
    row_bytes = rows.bytes / len(rows) / _NARROWED
    found: list[Body] = []
    begin = 0
    while begin < len(rows):
        most = int(min(ROWS_MAX, max(1, bytes_max // (row_bytes + _AROUND_BYTES))))
        made = _within_bounds(rows.slice(begin, min(begin + most, len(rows))))
        found += made
        count = sum(body.count for body in made)
        begin += count
        row_bytes = sum(len(body.data) for body in made) / count  # those that follow are most likely alike
    return found


def _within_bounds(rows: Rows) -> list[Body]:
    """Rows are not equally large: what has too many bytes is cut in two."""
    body = _encoded(rows)
    if len(body.data) <= BODY_BYTES_MAX or len(rows) == 1:
        return [body]
    middle = len(rows) // 2
    return _within_bounds(rows.slice(0, middle)) + _within_bounds(rows.slice(middle, len(rows)))


def _encoded(rows: Rows) -> Body:
    table = rows.fields.append_column(KEY, rows.keys).append_column(TIME_MS, pa.array(rows.times_ms))
    payload = packed_parts(table)
    size = sum(map(len, payload))
    fields = b"\0\0\0" + bytes([_NULL]) + _varint(size)
    count, newest_ms = len(rows), int(rows.times_ms.max())
    around = _varint(len(fields) + size + len(_TAIL))
    data = b"".join([around, fields, *payload, _TAIL, memoryview(_EMPTY)[: _EMPTY_ENDS[count - 1]]])
    return Body(memoryview(data), count, newest_ms, newest_ms, is_columns=True)


def compressed(body: Body) -> Body:
    """Returns it as it is sent. Of a few rows nothing is changed: they are compressed as all else is."""
    if body.is_packed or body.count < FAST_ROWS_MIN:
        return body
    packed = zstandard.ZstdCompressor(level=_FAST_LEVEL).compress(body.data)
    return replace(body, data=memoryview(packed), is_packed=True) if len(packed) < len(body.data) else body


# -- read --------------------------------------------------------------------------------------------


def rows_of(body: Body) -> Rows:
    """Returns the rows of which `encoded` has made the body."""
    data = zstd_of_thread().decompress(body.data) if body.is_packed else bytes(body.data)
    rows = _rows_in(data, 0, body.count)
    assert rows is not None, "the body holds rows"
    return rows


def is_own(topic: str) -> bool:
    """Returns whether Fogline alone writes the topic: only there a batch is believed to hold rows."""
    return topic.startswith(OWN_TOPICS)


def rows_in(batch: DefaultRecordBatch) -> Rows | None:
    """Returns the rows that a batch holds as columns, or None if it has only records. A batch that is not as
    it says has only records, and none of them can be read as a row."""
    unpack(batch)
    try:
        return _rows_in(batch._buffer, batch._pos, batch.records_count)
    except (pa.ArrowException, OSError, IndexError, KeyError, ValueError, struct.error):
        return None


def _rows_in(data: bytearray | bytes, begin: int, count: int) -> Rows | None:
    size, at = decode_varint(data, begin)
    end = at + size
    if data[end - len(_TAIL) : end] != _TAIL:
        return None
    for _ in range(4):  # attributes, time, offset, key
        _, at = decode_varint(data, at)
    size, at = decode_varint(data, at)
    table = unpacked(memoryview(data)[at : at + size])
    if table.num_rows != count:
        raise ValueError(f"it has {count} records, and {table.num_rows} rows")
    keys, times_ms = table[KEY].combine_chunks(), table[TIME_MS].to_numpy()
    return Rows(keys, times_ms, table.drop_columns([KEY, TIME_MS]))


class RecordByRecord(Fetcher.PartitionRecords):
    """What a fetch has brought of a partition, as a consumer gives it: each row is a record of its own."""

    def __init__(self, fetch_offset: int, partition: Any, records: Any, **options: Any) -> None:
        written_out = _AllWrittenOut(records) if is_own(partition.topic) else records
        super().__init__(fetch_offset, partition, written_out, **options)


class _AllWrittenOut:
    """Takes the place of MemoryRecords."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        return batch if batch is None or batch.magic < 2 else WrittenOut(batch)


class WrittenOut:
    """Takes the place of a DefaultRecordBatch."""

    def __init__(self, batch: DefaultRecordBatch) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Any:
        _write_out(self._batch)
        return iter(self._batch)


def _write_out(batch: DefaultRecordBatch) -> None:
    rows = rows_in(batch)
    if rows is not None:
        body = body_of(rows.as_json(), batch.first_timestamp)
        batch._buffer, batch._pos = bytearray(body), 0
