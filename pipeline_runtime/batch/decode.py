"""Turns Kafka values into Arrow columns, and values that it cannot read into rejects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipeline_runtime.batch.alike import parse_alike
from pipeline_runtime.batch.few import parse_few
from pipeline_runtime.batch.foreign import foreign_reason, is_enclosed, not_an_object
from pipeline_runtime.model.schema import FieldType, StreamSchema

TIMESTAMP = pa.timestamp("us", tz="UTC")
ARROW_TYPES: dict[FieldType, pa.DataType] = {
    FieldType.INTEGER: pa.int64(),
    FieldType.NUMBER: pa.float64(),
    FieldType.STRING: pa.string(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: TIMESTAMP,
}


_OPENS, _CLOSES = b"{}"
_BLOCK_BYTES = 1 << 18  # what one thread parses at a time
_RESCUED_AT_ONCE = 64  # so many values are read one by one, if one of them is unreadable
_YEARS_US = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # from the year 1 to 9999


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that is not what its stream's schema says."""

    index: int  # among the values that were decoded
    reason: str
    raw: str | None = None  # the part of the record that is rejected, if it is not all of it


class NotRead(ValueError):
    """What raises it cannot read a record's text, but Arrow may."""


@dataclass(frozen=True, slots=True)
class Decoded:
    columns: pa.Table  # one row per readable value, in order
    kept: list[int] | None  # their indices; None when all are readable
    rejects: tuple[Reject, ...]


@lru_cache(maxsize=256)
def arrow_schema(schema: StreamSchema) -> pa.Schema:
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields])


Rescue = Callable[[bytes], dict[str, Any]]


def decode(values: pa.BinaryArray, schema: StreamSchema, rescue: Rescue | None = None) -> Decoded:
    """Parse JSON objects, one per value. Fields that the schema lacks are dropped, missing ones null.

    `rescue` is given values that Arrow does not read, and some around them. It returns a value's row, the
    same as Arrow's if that has one, or raises ValueError with the reason why there is none. It raises NotRead
    if Arrow alone can tell. NaN then stands for no value.

    Few values are parsed in Python. Many are written alike most often, and are cut apart. What is left is
    parsed in one go by Arrow (100 times faster than one by one); when that fails, halves are tried until the
    unreadable ones are alone, or among few that `rescue` is given.
    """
    target = arrow_schema(schema)
    rejects: list[Reject] = []
    kept: Sequence[int] = range(len(values))
    table = parse_few(values, target)
    if table is None:
        table = parse_alike(values, target)
    if table is None:
        table = _at_once(values, target)
    if table is None:
        table, kept = _by_halves(values.to_pylist(), target, rejects, rescue)
    if rescue is not None:
        table = _without_nan(table)
    unholdable: list[Reject] = []
    table, kept = _holdable(table, kept, unholdable)
    rejects += [_as_told_alone(each, values, rescue) for each in unholdable]
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
        elif not is_enclosed(value or b"", b"{}"):
            rejects.append(Reject(index, not_an_object(value or b"")))
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
    # A tab instead of a line break: it is a space between a record's parts too, and none of it in a text.
    lines = [(values[index] or b"").replace(b"\n", b"\t").replace(b"\r", b"\t") for index in indices]
    try:
        table = _parsed(b"\n".join(lines), len(indices), max(map(len, lines)), target)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if rescue is not None and len(indices) <= _RESCUED_AT_ONCE:
            _rescued(values, indices, target, tables, kept, rejects, rescue)
            return
        if len(indices) == 1:
            rejects.append(Reject(indices[0], _reason(error)))
            return
        middle = len(indices) // 2
        _parse(values, indices[:middle], target, tables, kept, rejects, rescue)
        _parse(values, indices[middle:], target, tables, kept, rejects, rescue)
        return
    tables.append(table)
    kept.extend(indices)


def _rescued(
    values: Sequence[bytes | None],
    indices: Sequence[int],
    target: pa.Schema,
    tables: list[pa.Table],
    kept: list[int],
    rejects: list[Reject],
    rescue: Rescue,
) -> None:
    """Reads values one by one. This must not depend on which others are there: a batch may be read again
    with other ones."""
    rows: list[dict[str, Any]] = []
    for index in indices:
        value = values[index] or b""
        try:
            rows.append(rescue(value))
        except NotRead as reason:
            alone = _alone(value, target)
            if alone is None:
                rejects.append(Reject(index, str(reason)))
                continue
            tables += [pa.Table.from_pylist(rows, target), alone]
            rows = []
        except ValueError as reason:
            rejects.append(Reject(index, str(reason)))
            continue
        kept.append(index)
    if rows:
        tables.append(pa.Table.from_pylist(rows, target))


def _alone(value: bytes, target: pa.Schema) -> pa.Table | None:
    try:
        return _parsed(value.replace(b"\n", b"\t").replace(b"\r", b"\t"), 1, len(value), target)
    except (pa.ArrowInvalid, UnicodeDecodeError):
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


def _holdable(table: pa.Table, kept: Sequence[int], rejects: list[Reject]) -> tuple[pa.Table, Sequence[int]]:
    """Without the rows that have a value which no later stage could read.

    JSON cannot write a number that is not finite. Arrow makes such numbers of NaN and Infinity, which it
    takes without quotes, and of hundreds of digits. Python has no time before the year 1 or after the year
    9999.
    """
    wrong: dict[int, str] = {}
    for field in table.schema:
        good = _good(table[field.name], field.type)
        if good is None or pc.all(good).as_py():  # of no rows too
            continue
        says = "is a number that no row can hold"
        if pa.types.is_timestamp(field.type):
            says = "is no time between the years 1 and 9999"
        for row, is_good in enumerate(good.to_pylist()):
            if not is_good:
                wrong.setdefault(row, f'its field "{field.name}" {says}')
    if not wrong:
        return table, kept
    rejects += [Reject(kept[row], reason) for row, reason in wrong.items()]
    good_rows = [row for row in range(table.num_rows) if row not in wrong]
    return table.take(pa.array(good_rows, pa.int64())), [kept[row] for row in good_rows]


def _as_told_alone(reject: Reject, values: pa.BinaryArray, rescue: Rescue | None) -> Reject:
    """Returns it with the reason that `rescue` has for its value, which may depend on no other value."""
    if rescue is None:
        return reject
    try:
        rescue(values[reject.index].as_py())
    except NotRead:
        pass
    except ValueError as reason:
        return Reject(reject.index, str(reason))
    return reject


def _good(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray | None:
    """Returns which values are good, or None if all are for their type alone."""
    if pa.types.is_floating(type_):
        return pc.fill_null(pc.is_finite(values), True)
    if pa.types.is_timestamp(type_):
        times_us, (first_us, last_us) = values.cast(pa.int64()), _YEARS_US
        good = pc.and_(pc.greater_equal(times_us, first_us), pc.less_equal(times_us, last_us))
        return pc.fill_null(good, True)
    return None


def _reason(error: pa.ArrowInvalid | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the record is not UTF-8 text: {error.reason}"
    text = str(error).replace("JSON parse error: ", "").split(" in row ")[0].strip()
    return f"the record does not fit the stream's schema: {text}"
