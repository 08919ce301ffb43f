"""Stores columns in as few bytes as their values need, without loss.

Measured values mostly have few digits behind the point. Counters and times are close together, and texts come
again. So numbers become integers. Integers become their distance from the smallest one or from the one
before, in one, two or four bytes. Texts become places in a list, one byte each. A column that would not gain
by that stays as it is.

The ideas are frame of reference (Goldstein and others, ICDE 1998), and for decimal numbers ALP (Afroozeh and
others, SIGMOD 2023).
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_SAMPLE = 64
_DECIMALS_MAX = 6
_POWERS = 10.0 ** np.arange(_DECIMALS_MAX + 1)[:, np.newaxis]
_EXACT = 2**53  # integers up to here are exact as numbers
_TEXTS_SHARE = 2  # of a sample, one in so many texts may be a new one
_TEXTS_MAX = 2**8
_WIDTHS = (np.uint8, np.uint16, np.uint32)


def packed(table: pa.Table) -> bytes:
    """Returns the table's columns as bytes: how each is written, and an Arrow record batch."""
    return b"".join(packed_parts(table))


def packed_parts(table: pa.Table) -> list[bytes | memoryview]:
    """Returns what `packed` joins."""
    arrays, names, columns = [], [], []
    for field in table.schema:
        if field.type == pa.binary() and (like := _like(table, table[field.name])) is not None:
            columns.append([field.name, _NAMES[field.type], {"like": like}, ""])
            continue
        array, how = _narrow(table[field.name].combine_chunks(), field.type)
        arrays.append(array)
        names.append(field.name)
        columns.append([field.name, _NAMES[field.type], how, _NAMES[array.type]])
    head = json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-(len(head) + _SIZE.size) % _ALIGNED)
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    return [_SIZE.pack(len(head)), head, memoryview(batch.serialize())]


def unpacked(data: memoryview) -> pa.Table:
    """Returns the table of which `packed` has made the bytes. Raises ArrowInvalid or ValueError if they are
    not as they say."""
    [size] = _SIZE.unpack_from(data)
    begin = _SIZE.size + size
    columns = json.loads(bytes(data[_SIZE.size : begin]))
    schema = pa.schema([(name, _TYPES[written]) for name, _, how, written in columns if "like" not in how])
    batch = pa.ipc.read_record_batch(pa.py_buffer(bytes(data[begin:])), schema)
    batch.validate()
    written = iter(batch.columns)
    arrays = [
        None if "like" in how else _widen(next(written), _TYPES[type_], how) for _, type_, how, _ in columns
    ]
    for place, (_, type_, how, _) in enumerate(columns):
        if "like" in how:
            arrays[place] = arrays[how["like"]].cast(_TYPES[type_])
    return pa.Table.from_arrays(arrays, names=[name for name, *_ in columns])


_SIZE = struct.Struct("<Q")  # of what stands before the record batch
_ALIGNED = 8
_TIME = pa.timestamp("us", tz="UTC")
_NAMES = {
    pa.int64(): "integer",
    pa.float64(): "number",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    _TIME: "timestamp",
    pa.uint8(): "u8",
    pa.uint16(): "u16",
    pa.uint32(): "u32",
}
_TYPES = {name: type_ for type_, name in _NAMES.items()}
How = dict[str, Any]
"""What makes a column of what is written: the empty one if it is written as it is. `like` is the place of an
column of texts that are the same; then nothing else is written of it."""


def _like(table: pa.Table, column: pa.ChunkedArray) -> int | None:
    """Returns the place of a column of texts that has the same bytes: a row's key mostly is one of its
    fields."""
    for place, other in enumerate(table.columns):
        if other.type == pa.string() and other.cast(pa.binary()).equals(column):
            return place
    return None


def _narrow(column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, How]:
    if not len(column) or column.null_count == len(column):
        return column, {}
    if type_ in (pa.string(), pa.binary()):
        return _narrow_texts(column)
    if type_ == pa.float64():
        return _narrow_numbers(column)
    if type_ in (pa.int64(), _TIME):
        return _narrow_integers(column.cast(pa.int64()), column, {})
    return column, {}


def _widen(array: pa.Array, type_: pa.DataType, how: How) -> pa.Array:
    if not how:
        return array
    if "texts" in how:
        texts = pa.array(how["texts"], pa.string()).cast(type_)
        return pa.DictionaryArray.from_arrays(array.cast(pa.int32()), texts).dictionary_decode()
    valid = array.is_valid() if array.null_count else None
    numbers = _numpy(array.fill_null(0) if array.null_count else array).astype(np.int64)
    if "first" in how:
        numbers[0] = 0
        numbers = how["first"] + np.cumsum(numbers + how["least"]) - how["least"]
    else:
        numbers += how["least"]
    made = pa.array(numbers / 10.0 ** how["decimals"]) if "decimals" in how else pa.array(numbers)
    made = made if made.type == type_ else made.cast(type_)
    return made if valid is None else pc.if_else(valid, made, pa.scalar(None, type_))


def _narrow_texts(column: pa.Array) -> tuple[pa.Array, How]:
    sample = column.slice(0, _SAMPLE)
    if len(sample.unique()) * _TEXTS_SHARE > len(sample):
        return column, {}
    coded = column.dictionary_encode()
    if len(coded.dictionary) > _TEXTS_MAX:
        return column, {}
    return coded.indices.cast(pa.uint8()), {"texts": coded.dictionary.cast(pa.string()).to_pylist()}


def _narrow_numbers(column: pa.Array) -> tuple[pa.Array, How]:
    numbers = _numpy(column.fill_null(0.0) if column.null_count else column)
    decimals = _decimals(numbers[:_SAMPLE])
    while decimals is not None:
        whole = _as_decimals(numbers, decimals)
        if whole is not None:
            return _narrow_integers(_with_nulls(whole, column), column, {"decimals": decimals})
        decimals = decimals + 1 if decimals < _DECIMALS_MAX else None
    return column, {}


def _decimals(sample: NDArray[np.float64]) -> int | None:
    """Returns with how few decimals all of the sample can be written, or None. Like `_as_decimals`, but for
    all numbers of decimals at once, and it takes -0 for 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint(sample * _POWERS)
        exact = (np.abs(scaled) < _EXACT) & (scaled / _POWERS == sample)
    fits = exact.all(axis=1)
    return int(fits.argmax()) if fits.any() else None


def _as_decimals(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.int64] | None:
    """Returns the numbers times ten to the power of `decimals`, or None if that is not exact for all."""
    power = 10.0**decimals
    with np.errstate(over="ignore"):
        scaled = np.rint(numbers * power)
    if not (np.abs(scaled) < _EXACT).all() or not np.array_equal(scaled / power, numbers):
        return None
    zeros = numbers[scaled == 0]
    if len(zeros) and np.signbit(zeros).any():  # an integer has no -0
        return None
    return scaled.astype(np.int64)


def _narrow_integers(column: pa.Array, as_it_is: pa.Array, how: How) -> tuple[pa.Array, How]:
    """`column` has 64 bits. Returns `as_it_is` if fewer do not do."""
    if column.null_count:
        column = column.fill_null(pc.min(column))
    numbers = _numpy(column)
    least, most = int(numbers.min()), int(numbers.max())
    span = most - least
    # A null would hide the step to it, which all that follow need. A longer span may have steps of 65 bits.
    has_steps = not as_it_is.null_count and span < 2**62 and len(numbers) > 1
    steps = np.diff(numbers) if has_steps else None
    if steps is not None:
        step_least = int(steps.min())
        step_span = int(steps.max()) - step_least
        if _width(step_span) < _width(span):
            how |= {"first": int(numbers[0]), "least": step_least}
            span, found = step_span, np.concatenate([[0], steps - step_least])
            return _with_nulls(found.astype(_WIDTHS[_width(span)]), as_it_is), how
    if _width(span) == len(_WIDTHS):
        return as_it_is, {}
    how |= {"least": least}
    return _with_nulls((numbers - least).astype(_WIDTHS[_width(span)]), as_it_is), how


def _width(span: int) -> int:
    """Returns the place in _WIDTHS of the first type that has numbers up to `span`, or their number."""
    return 0 if span < 2**8 else 1 if span < 2**16 else 2 if span < 2**32 else 3


def _with_nulls(numbers: NDArray[Any], like: pa.Array) -> pa.Array:
    if not like.null_count:
        return pa.array(numbers)
    return pa.array(numbers, mask=_numpy(like.is_null()))


def _numpy(array: pa.Array) -> NDArray[Any]:
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
