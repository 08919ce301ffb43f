"""Reads the records of a topic that others write, as the element's parameters say."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_runtime.batch.cells import KINDS, Unreadable, cell, event_time_us, said_float
from pipeline_runtime.batch.decode import NotRead, Reject, arrow_schema, decode
from pipeline_runtime.batch.foreign import foreign_reason, is_enclosed, not_an_object
from pipeline_runtime.formats.malformed import Malformed
from pipeline_runtime.formats.reading import value_reader
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError, no_registry
from pipeline_runtime.kafka.incoming import Headers
from pipeline_runtime.kafka.peek import key_text
from pipeline_runtime.model.paths import HEADER, KEY, ROOT, Path, value_at
from pipeline_runtime.model.plain_data import escaped
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import RecordReading

_DIGITS_MAX = 4000  # Python makes no integer of more than 4,300
_MINUS_ZERO = re.compile(rb"-0\s*[,}\]]")
_MAY_ROUND = re.compile(
    r"(?=[\d.]{17})\d+\.\d|\d[eE]-", re.ASCII
)  # a number that has more digits than are kept
_CONSTANTS = re.compile(r'"(?:[^"\\]|\\.)*+"|-NaN\b|-?\bInf\b')
_AS_PYTHON_WRITES = {"-NaN": "NaN", "Inf": "Infinity", "-Inf": "-Infinity"}

VALUES_MAX = 2_000_000
"""The most values of one record that is made Python objects, which take 20 times its bytes."""
DEPTH_MAX = 500
"""How deeply arrays and objects may lie in each other where Python reads. It would read up to 980, or as many
as its stack has room for: another thread or replica might have less."""
_PIECE_BYTES = 1 << 20  # of a record, whose brackets and quotes are looked at together
_DEEPER = bytes(((byte in b"[{") - (byte in b"]}")) & 0xFF for byte in range(256))
_PAIRS = (b"{}", b"[]")
ROWS_TOLD_MAX = 100
"""The most rows of one record that are dead letters of their own."""
RAW_CHARACTERS_MAX = 1000
"""How much of a row such a dead letter shows."""
_ROWS_BYTES_MIN, _ROWS_BYTES_FACTOR = 1 << 20, 20


class _NotJson(Unreadable, NotRead):
    """Python does not read the record. Arrow may: it takes what is nested more deeply."""


class _Ambiguous(dict[str, Any]):
    """An object that has some of its fields more than once, which only matters if one of them is read."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._often = {name for name, count in Counter(name for name, _ in pairs).items() if count > 1}

    def get(self, name: str, default: Any = None) -> Any:
        if name in self._often:
            raise Unreadable(f'the record has the field "{name}" twice')
        return super().get(name, default)


@dataclass(frozen=True, slots=True)
class Read:
    """The rows of some records."""

    columns: pa.Table
    places: NDArray[np.int64]  # of each row: the place of its record among those that were read
    times_us: NDArray[np.int64]
    rejects: tuple[Reject, ...]
    numbers: NDArray[np.int64] | None = None  # of each row of an array: its place there

    def between(self, first: int, last: int) -> Read:
        """Returns what is in the records from the place `first` to before `last`, which count from 0 then."""
        begin, end = np.searchsorted(self.places, (first, last)).tolist()
        return Read(
            self.columns.slice(begin, end - begin),
            self.places[begin:end] - first,
            self.times_us[begin:end],
            tuple(
                Reject(reject.index - first, reject.reason, reject.raw)
                for reject in self.rejects
                if first <= reject.index < last
            ),
            None if self.numbers is None else self.numbers[begin:end],
        )


@dataclass(frozen=True, slots=True)
class Beside:
    """What each of some records has beside its value."""

    keys: pa.BinaryArray | None = None
    headers: Mapping[int, Headers] = field(default_factory=dict)  # by place

    def found(self, place: int, reading: RecordReading) -> Mapping[Path, str | None]:
        """Returns what the paths that begin with KEY or HEADER lead to, as text. All rows of the record share
        it."""
        return {
            column.path: self._found(place, column.path)
            for column in reading.columns
            if column.path[:1] in ((KEY,), (HEADER,))
        }

    def _found(self, place: int, path: Path) -> str | None:
        if path[0] == KEY:
            key = None if self.keys is None else self.keys[place].as_py()
            return None if key is None else key_text(key)
        values = [value for name, value in self.headers.get(place, ()) if name == path[1]]
        return None if not values or values[-1] is None else key_text(values[-1])


_NOTHING = Beside()
_TIMESTAMP_MS_MAX = (2**63 - 1) // 1000
"""The largest number of milliseconds that is less than 64 bits of microseconds."""


def read_outside(
    values: pa.BinaryArray,
    timestamps_ms: NDArray[np.int64],
    schema: StreamSchema,
    reading: RecordReading,
    beside: Beside = _NOTHING,
    registries: Registries = no_registry,
) -> Read:
    """Returns the rows of the records, in their order. What cannot be read is rejected, each row for
    itself. A timestamp that microseconds cannot hold becomes the nearest one that they can hold. Raises
    SchemaRegistryError."""
    timestamps_ms = np.minimum(np.maximum(timestamps_ms, -_TIMESTAMP_MS_MAX), _TIMESTAMP_MS_MAX)
    if reading.is_plain:
        return _plain(values, timestamps_ms, schema, reading)
    return _mapped(values.to_pylist(), timestamps_ms, schema, reading, beside, registries)


def _plain(
    values: pa.BinaryArray,
    timestamps_ms: NDArray[np.int64],
    schema: StreamSchema,
    reading: RecordReading,
) -> Read:
    """Each record is one row of fields that have the columns' types: Arrow reads them 20 times as fast."""
    as_written = _as_written(schema, reading)

    def rescue(value: bytes) -> dict[str, Any]:
        [row] = _rows_of(value, schema, reading)
        return dict(zip(as_written.names, row, strict=True))

    decoded = decode(values, as_written, rescue)
    places = np.arange(len(values)) if decoded.kept is None else np.array(decoded.kept, np.int64)
    columns = decoded.columns.rename_columns(list(schema.names))
    return Read(columns, places, timestamps_ms[places] * 1000, decoded.rejects)


@lru_cache(maxsize=256)
def _as_written(schema: StreamSchema, reading: RecordReading) -> StreamSchema:
    """Returns the schema with the names that the records' fields have."""
    fields = zip(schema.fields, reading.columns, strict=True)
    return StreamSchema(fields=tuple(Field(name=str(c.path[0]), type=f.type) for f, c in fields))


def _mapped(
    values: Sequence[bytes | None],
    timestamps_ms: NDArray[np.int64],
    schema: StreamSchema,
    reading: RecordReading,
    beside: Beside,
    registries: Registries,
) -> Read:
    parsed = (
        _parsed
        if reading.format is None
        else value_reader(reading.format, _numbers(schema, reading), registries)
    )
    rows: list[list[Any]] = []
    places: list[int] = []
    times_us: list[int] = []
    numbers: list[int] = []
    rejects: list[Reject] = []
    for place, value in enumerate(values):
        try:
            whole = parsed(value)
            found = beside.found(place, reading)
            items = _items(whole, value or b"", reading, found)
        except (Unreadable, Malformed) as error:
            rejects.append(Reject(place, str(error), _shown(value, reading)))
            continue
        except SchemaRegistryError as error:
            error.place = place
            raise
        refused = _Refused(place, reading)
        for number, item in enumerate(items):
            try:
                row = _row(item, whole, schema, reading, found)
                at_us = int(timestamps_ms[place]) * 1000
                if reading.time is not None:
                    at_us = event_time_us(value_at(item, whole, reading.time.path), reading.time)
            except Unreadable as error:
                refused.add(number, str(error), item)
                continue
            rows.append(row)
            places.append(place)
            times_us.append(at_us)
            numbers.append(number)
        rejects += refused.told()
    target = arrow_schema(schema)
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in target]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, target, strict=True)], schema=target)
    return Read(
        table,
        np.array(places, np.int64),
        np.array(times_us, np.int64),
        tuple(rejects),
        None if reading.rows is None else np.array(numbers, np.int64),
    )


def _numbers(schema: StreamSchema, reading: RecordReading) -> frozenset[str | int]:
    """Returns the cells of CSV that are to be numbers."""
    numeric = (FieldType.INTEGER, FieldType.NUMBER)
    fields = zip(schema.fields, reading.columns, strict=True)
    return frozenset(
        column.path[0] for field, column in fields if field.type in numeric and len(column.path) == 1
    )


def _shown(value: bytes | None, reading: RecordReading) -> str | None:
    """Returns how a dead letter shows a record that is no text, or None if it is one."""
    if value is None or reading.format is None or reading.format.kind != "avro":
        return None
    return value[: RAW_CHARACTERS_MAX // 3].hex(" ")


class _Refused:
    """The rows of one record that are refused. A record of a million such rows must not become as many dead
    letters, each with all of the record."""

    def __init__(self, place: int, reading: RecordReading) -> None:
        """`place`: that of the record."""
        self._place = place
        self._is_of_array = reading.rows is not None
        self._is_shown = reading.format is not None  # its record may be no text
        self._rejects: list[Reject] = []
        self._untold = 0

    def add(self, number: int, reason: str, row: Any) -> None:
        """`number`: the row's place in the array."""
        raw = None
        if (self._is_of_array or self._is_shown) and len(self._rejects) < ROWS_TOLD_MAX:
            raw = escaped(json.dumps(row, default=str, ensure_ascii=False)[:RAW_CHARACTERS_MAX])
        if not self._is_of_array:
            self._rejects.append(Reject(self._place, reason, raw))
        elif len(self._rejects) < ROWS_TOLD_MAX:
            self._rejects.append(Reject(self._place, f"row {number + 1}: {reason}", raw))
        else:
            self._untold += 1

    def told(self) -> list[Reject]:
        if self._untold:
            reason = (
                f"{self._untold:,} more rows of the record are refused. Only the first ones are dead letters"
            )
            return [*self._rejects, Reject(self._place, reason)]
        return self._rejects


def not_far_ahead(read: Read, reading: RecordReading, batch_time_ms: int) -> Read:
    """Returns the rows without those whose time lies further ahead of their arrival than the parameters
    allow, or with the arrival as their time. `batch_time_ms` stands for the arrival.

    A record may have no timestamp, for which -1 stands. Its row takes the arrival as its time, too.
    """
    arrived_us = batch_time_ms * 1000
    if (read.times_us < 0).any():
        read = replace(read, times_us=np.where(read.times_us < 0, arrived_us, read.times_us))
    limit_us = arrived_us + round(reading.ahead_s * 1_000_000)
    is_far = read.times_us > limit_us
    if not is_far.any():
        return read
    if reading.ahead == "arrival":
        return replace(read, times_us=np.where(is_far, arrived_us, read.times_us))
    far = [
        reject
        for place, found in groupby(np.flatnonzero(is_far).tolist(), lambda row: int(read.places[row]))
        for reject in _far(read, place, list(found), reading)
    ]
    near = ~is_far
    rejects = tuple(sorted([*read.rejects, *far], key=lambda reject: reject.index))
    numbers = None if read.numbers is None else read.numbers[near]
    return Read(read.columns.filter(pa.array(near)), read.places[near], read.times_us[near], rejects, numbers)


def _far(read: Read, place: int, found: Sequence[int], reading: RecordReading) -> list[Reject]:
    """`found`: which rows of the record at `place` lie too far ahead."""
    refused = _Refused(place, reading)
    for row in found:
        reason = (
            f"its time, {_text_of(int(read.times_us[row]))}, is more than {reading.ahead_s:g} s after its"
            " arrival: it would make all rows before it late"
        )
        number = 0 if read.numbers is None else int(read.numbers[row])
        refused.add(number, reason, read.columns.slice(row, 1).to_pylist()[0])
    return refused.told()


def _text_of(us: int) -> str:
    return str(np.datetime64(us, "us"))[:23] + "Z"


def _rows_of(value: bytes, schema: StreamSchema, reading: RecordReading) -> list[list[Any]]:
    whole = _parsed(value)
    return [_row(item, whole, schema, reading, {}) for item in _items(whole, value, reading, {})]


def _parsed(value: bytes | None) -> Any:
    reason = foreign_reason(value)
    if reason is not None:
        raise Unreadable(reason)
    assert value is not None
    opened = value.count(b"{") + value.count(b"[")
    if opened + value.count(b",") > VALUES_MAX:
        raise _NotJson(f"the record has more than {VALUES_MAX:,} values")
    if opened > DEPTH_MAX and _depth(value) > DEPTH_MAX:
        raise _NotJson(f"the record is nested more than {DEPTH_MAX} deep")
    try:
        text = value.decode()
        # As Arrow reads it: an integer has no -0, and a number does.
        read_integer = _integer if _MINUS_ZERO.search(value) else None
        try:
            return _loaded(text, read_integer)
        except json.JSONDecodeError:
            as_python_writes = _with_constants(text)
            if as_python_writes == text:
                raise
            return _loaded(as_python_writes, read_integer)
        except ValueError:
            return _loaded(text, _integer)
    except UnicodeDecodeError as error:
        what = f"the record is not UTF-8 text: {error.reason}"
        raise Unreadable(what if is_enclosed(value, *_PAIRS) else not_an_object(value)) from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise _NotJson("there is more than one JSON value in the record") from error
        if not is_enclosed(value, *_PAIRS):
            raise Unreadable(not_an_object(value)) from error
        why = error.msg.removesuffix(" at")
        raise _NotJson(f"the record is not JSON: {why} at character {error.pos}") from error


def _depth(value: bytes) -> int:
    """Returns how deeply arrays and objects lie in each other."""
    unescaped = value.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in value else value
    deepest = depth = 0
    is_in_text = False
    for begin in range(0, len(unescaped), _PIECE_BYTES):
        piece = unescaped[begin : begin + _PIECE_BYTES]
        steps = np.frombuffer(piece.translate(_DEEPER), np.int8)
        brackets = np.flatnonzero(steps != 0)
        quotes = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord('"'))
        is_outside = np.searchsorted(quotes, brackets) % 2 == is_in_text
        depths = depth + np.cumsum(steps[brackets[is_outside]], dtype=np.int64)
        deepest, depth = max(deepest, int(depths.max(initial=0))), int(depths[-1]) if len(depths) else depth
        is_in_text ^= len(quotes) % 2 == 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Ambiguous(pairs)


def _constant(text: str) -> float | None:
    """Python, and others after it, write NaN for no value. Infinity is a value, which no row can have."""
    return None if text == "NaN" else float(text)


def _with_constants(text: str) -> str:
    """Returns the text with -NaN and Inf, which Arrow reads as well, as Python writes them."""
    return _CONSTANTS.sub(lambda found: _AS_PYTHON_WRITES.get(found[0], found[0]), text)


def _loaded(text: str, read_integer: Callable[[str], float] | None) -> Any:
    return json.loads(
        text,
        object_pairs_hook=_object,
        parse_constant=_constant,
        parse_int=read_integer,
        parse_float=said_float if _MAY_ROUND.search(text) else None,
    )


def _integer(text: str) -> float:
    """Python makes no integer of more than 4,300 digits. Nobody may need the field that holds them."""
    return int(text) if len(text) <= _DIGITS_MAX and text != "-0" else float(text)


def _items(whole: Any, value: bytes, reading: RecordReading, beside: Mapping[Path, str | None]) -> list[Any]:
    """The record's rows, as they are written. `value`: the record as it came. `beside`: its key and headers,
    as far as they are columns."""
    if reading.rows is None:
        if reading.format is not None and reading.format.kind == "text":
            return [whole]
        if not isinstance(whole, dict):
            is_json = reading.format is None
            raise Unreadable(not_an_object(value) if is_json else f"the record is {_kind(whole)}, and no row")
        return [whole]
    items = value_at(whole, whole, reading.rows) if reading.rows else whole
    if not isinstance(items, list):
        raise Unreadable("there is no array of rows where the parameter rows says")
    _check_size(items, whole, len(value), reading, beside)
    return items


def _check_size(
    items: Sequence[Any],
    whole: Any,
    record_bytes: int,
    reading: RecordReading,
    beside: Mapping[Path, str | None],
) -> None:
    """What stands beside the array, the key and the headers lie in each of its rows: a long text there would
    make gigabytes of a small record."""
    paths = [column.path for column in reading.columns if column.path[:1] == (ROOT,)]
    texts = [text for path in paths if isinstance(text := value_at(None, whole, path), str)]
    texts += [text for text in beside.values() if text is not None]
    size, most = sum(map(len, texts)) * len(items), max(_ROWS_BYTES_MIN, _ROWS_BYTES_FACTOR * record_bytes)
    if size > most:
        raise Unreadable(
            f"the texts beside its {len(items):,} rows would take {size:,} characters, since each row has"
            f" them: at most {most:,} are taken of a record of {record_bytes:,} bytes"
        )


def _row(
    item: Any,
    whole: Any,
    schema: StreamSchema,
    reading: RecordReading,
    beside: Mapping[Path, str | None],
) -> list[Any]:
    if not isinstance(item, dict):
        _check_entry(item, reading)
    return [
        cell(
            beside[column.path] if column.path[0] in (KEY, HEADER) else value_at(item, whole, column.path),
            field,
            column,
        )
        for field, column in zip(schema.fields, reading.columns, strict=True)
    ]


def _check_entry(item: Any, reading: RecordReading) -> None:
    """An entry of the array that can have none of the fields is no row without values."""
    steps = [column.path[0] for column in reading.columns if column.path[0] not in (ROOT, KEY, HEADER)]
    if reading.format is not None and reading.format.kind == "csv":
        _check_cells(item, steps, has_names=reading.format.names)
    elif steps and not (isinstance(item, list) and any(isinstance(step, int) for step in steps)):
        raise Unreadable(f"it is {_kind(item)}, and has none of the fields")


def _check_cells(item: list[str], steps: Sequence[str | int], *, has_names: bool) -> None:
    """A line that was cut off is no row whose last values are missing."""
    if has_names:
        raise Unreadable(f"it has {len(item)} cells, and the line of names has another number")
    needed = max((step for step in steps if isinstance(step, int)), default=-1) + 1
    if len(item) < needed:
        raise Unreadable(f"it has {len(item)} cells, and at least {needed} are needed")


def _kind(value: Any) -> str:
    return KINDS.get(type(value), type(value).__name__)
