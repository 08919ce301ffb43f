"""Kafka values to Arrow columns, and what cannot be read to rejects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipeline_runtime.model.schema import FieldType, StreamSchema

TIMESTAMP = pa.timestamp("us", tz="UTC")
ARROW_TYPES: dict[FieldType, pa.DataType] = {
    FieldType.INTEGER: pa.int64(),
    FieldType.NUMBER: pa.float64(),
    FieldType.STRING: pa.string(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: TIMESTAMP,
}


_SPACE = b" \t\r\n"  # what JSON counts as space
_OPENS, _CLOSES = b"{}"
_BLOCK_BYTES = 1 << 18  # what one thread parses at a time
_REGISTRY_BYTES = 5  # a zero and four bytes that number the schema


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that is not what its stream's schema says."""

    index: int  # among the values that were decoded
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    columns: pa.Table  # one row per readable value, in order
    kept: list[int] | None  # their indices; None when all are readable
    rejects: tuple[Reject, ...]


def arrow_schema(schema: StreamSchema) -> pa.Schema:
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields])


Rescue = Callable[[bytes], dict[str, Any]]


def decode(values: pa.BinaryArray, schema: StreamSchema, rescue: Rescue | None = None) -> Decoded:
    """Parse JSON objects, one per value. Fields that the schema lacks are dropped, missing ones null.

    `rescue` is given each value that Arrow does not read, and returns its row, or raises ValueError with the
    reason why there is none. NaN then stands for no value.

    The values are parsed in one go by Arrow (100 times faster than one by one); when that fails,
    halves are tried until the unreadable ones are alone.
    """
    target = arrow_schema(schema)
    rejects: list[Reject] = []
    kept: Sequence[int] = range(len(values))
    table = _at_once(values, target)
    if table is None:
        table, kept = _by_halves(values.to_pylist(), target, rejects, rescue)
    if rescue is not None:
        table = _without_nan(table)
    table, kept = _finite(table, kept, rejects)
    return Decoded(
        table, list(kept) if rejects else None, tuple(sorted(rejects, key=lambda item: item.index))
    )


def _at_once(values: pa.BinaryArray, target: pa.Schema) -> pa.Table | None:
    """Returns the rows, or None if it has to be checked which of the values are objects in one line."""
    lengths = pc.binary_length(values)
    if lengths.null_count or (pc.min(lengths).as_py() or 0) < len("{}"):
        return None
    text: bytes = pc.binary_join(pa.ListArray.from_arrays([0, len(values)], values), b"\n")[0].as_py()
    data = np.frombuffer(text, np.uint8)
    ends = np.cumsum(lengths.to_numpy() + 1) - 1
    begins = np.concatenate([[0], ends[:-1] + 1])
    is_object = (data[begins] == _OPENS).all() and (data[ends - 1] == _CLOSES).all()
    # Each line break has to be one that was put between two of them.
    if not is_object or text.count(b"\n") != len(values) - 1 or b"\r" in text:
        return None
    try:
        return _parsed(text, len(values), pc.max(lengths).as_py(), target)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None


def _by_halves(
    values: Sequence[bytes | None], target: pa.Schema, rejects: list[Reject], rescue: Rescue | None
) -> tuple[pa.Table, list[int]]:
    candidates: list[int] = []
    for index, value in enumerate(values):
        # Each value begins and ends with a brace, so that no two of them can be read as one row: as many
        # rows as values then means one row for each.
        if (reason := foreign_reason(value)) is not None:
            rejects.append(Reject(index, reason))
        elif (trimmed := (value or b"").strip(_SPACE))[:1] != b"{" or trimmed[-1:] != b"}":
            rejects.append(Reject(index, "the record is not a JSON object"))
        else:
            candidates.append(index)
    tables: list[pa.Table] = []
    kept: list[int] = []
    _parse(values, candidates, target, tables, kept, rejects, rescue)
    return pa.concat_tables(tables) if tables else target.empty_table(), kept


def _parse(
    values: Sequence[bytes | None],
    indices: list[int],
    target: pa.Schema,
    tables: list[pa.Table],
    kept: list[int],
    rejects: list[Reject],
    rescue: Rescue | None,
) -> None:
    if not indices:
        return
    lines = [(values[index] or b"").replace(b"\n", b" ").replace(b"\r", b" ") for index in indices]
    try:
        table = _parsed(b"\n".join(lines), len(indices), max(map(len, lines)), target)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if len(indices) == 1:
            _rescue_one(values[indices[0]] or b"", indices[0], error, target, tables, kept, rejects, rescue)
            return
        middle = len(indices) // 2
        _parse(values, indices[:middle], target, tables, kept, rejects, rescue)
        _parse(values, indices[middle:], target, tables, kept, rejects, rescue)
        return
    tables.append(table)
    kept.extend(indices)


def _rescue_one(
    value: bytes,
    index: int,
    error: pa.ArrowInvalid | UnicodeDecodeError,
    target: pa.Schema,
    tables: list[pa.Table],
    kept: list[int],
    rejects: list[Reject],
    rescue: Rescue | None,
) -> None:
    if rescue is None:
        rejects.append(Reject(index, _reason(error)))
        return
    try:
        tables.append(pa.Table.from_pylist([rescue(value)], target))
    except ValueError as reason:
        rejects.append(Reject(index, str(reason)))
    else:
        kept.append(index)


def foreign_reason(value: bytes | None) -> str | None:
    """Why this is plainly not a JSON text in UTF-8, or None if it may be one."""
    if value is None:
        return "the record is a tombstone: it has a key, and no value"
    if not value.strip(_SPACE):
        return "the record is empty"
    if value[:3] == b"\xef\xbb\xbf":
        return "the record begins with a byte order mark (UTF-8), which JSON does not have"
    if value[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "the record begins with a byte order mark (UTF-16): only UTF-8 is read"
    if value[0] == 0 and len(value) > _REGISTRY_BYTES:
        schema = int.from_bytes(value[1:_REGISTRY_BYTES])
        return (
            f"the record begins with a schema registry's prefix (schema {schema}): it is Avro, Protobuf or"
            " JSON of a registry's serializer, and only plain JSON is read"
        )
    return None


def _without_nan(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = table.column(place)
            no_number = pc.fill_null(pc.is_nan(values), False)
            if pc.any(no_number).as_py():
                cleaned = pc.if_else(no_number, pa.scalar(None, field.type), values)
                table = table.set_column(place, field, cleaned)
    return table


def _parsed(text: bytes, count: int, longest: int, target: pa.Schema) -> pa.Table:
    """Returns a table of so many lines of JSON, of which the longest has `longest` bytes. Raises
    ArrowInvalid, UnicodeDecodeError."""
    if not text.isascii():
        text.decode()  # Arrow takes any bytes for a text, and Spark's Python processes would fail on them
    block_bytes = max(_BLOCK_BYTES, longest + 1)  # Arrow refuses a line that goes on behind a second block
    several = len(text) > 2 * block_bytes
    table = pj.read_json(
        pa.BufferReader(text),
        read_options=pj.ReadOptions(
            use_threads=several, block_size=block_bytes if several else len(text) + 1
        ),
        parse_options=pj.ParseOptions(explicit_schema=target, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != count:
        raise pa.ArrowInvalid("more than one JSON value in a record")
    return table


def _finite(table: pa.Table, kept: Sequence[int], rejects: list[Reject]) -> tuple[pa.Table, Sequence[int]]:
    """Without the rows that have a number which JSON cannot write, so that no later stage could read them.

    Arrow makes such numbers of NaN and Infinity, which it takes without quotes, and of hundreds of digits.
    """
    wrong: dict[int, str] = {}
    for field in table.schema:
        if not pa.types.is_floating(field.type):
            continue
        finite = pc.fill_null(pc.is_finite(table[field.name]), True)
        if pc.all(finite).as_py():  # of no rows too
            continue
        for row, good in enumerate(finite.to_pylist()):
            if not good:
                wrong.setdefault(row, field.name)
    if not wrong:
        return table, kept
    for row, name in wrong.items():
        reason = f"the record does not fit the stream's schema: Column(/{name}) is not a finite number"
        rejects.append(Reject(kept[row], reason))
    good_rows = [row for row in range(table.num_rows) if row not in wrong]
    return table.take(pa.array(good_rows, pa.int64())), [kept[row] for row in good_rows]


def _reason(error: pa.ArrowInvalid | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the record is not UTF-8 text: {error.reason}"
    text = str(error).replace("JSON parse error: ", "").split(" in row ")[0].strip()
    return f"the record does not fit the stream's schema: {text}"
