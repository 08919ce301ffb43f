"""Reads many records at a tenth of the cost of kafka-python's consumer.

The consumer decodes eight numbers in Python for each record and makes two objects. That takes 4 us, which is
most of what a simple element costs. Here a consumer's polls return whole batches (`whole_batches.py`), and
NumPy decodes the records of many batches at once. Keys and values become columns: no object is made for a
record.

This uses internals of kafka-python. tests/unit/kafka compares the records with those of a consumer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kafka import KafkaConsumer
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint
from numpy.typing import NDArray

from pipeline_runtime.kafka.arrow_batches import Rows, is_own, rows_in
from pipeline_runtime.kafka.cut_texts import cut_texts
from pipeline_runtime.kafka.unpacking import BATCH_BYTES_MAX, RECORD_BYTES_MIN, UNREAD, unpack, unread_body

ROWS_AT_ONCE = 20_000
"""How many records are decoded at a time, or one batch if it is larger. Batches that become large when they
are unpacked are fewer."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of one partition, in the order of their offsets."""

    offsets: NDArray[np.int64]
    timestamps_ms: NDArray[np.int64]
    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: Mapping[int, Headers] = field(default_factory=dict)  # by place, for records that have headers
    rows: pa.Table | None = None  # the fields of each, of a batch that holds rows; `values` are null then

    def __len__(self) -> int:
        return len(self.values)

    def between(self, start: int, end: int) -> Records:
        """Returns the records with start <= offset < end."""
        first, last = np.searchsorted(self.offsets, (start, end)).tolist()
        if (first, last) == (0, len(self)):
            return self
        return Records(
            self.offsets[first:last],
            self.timestamps_ms[first:last],
            self.keys.slice(first, last - first),
            self.values.slice(first, last - first),
            {place - first: each for place, each in self.headers.items() if first <= place < last},
            None if self.rows is None else self.rows.slice(first, last - first),
        )

    @property
    def bytes(self) -> int:
        """Returns how many bytes the values have."""
        return pc.sum(pc.binary_length(self.values)).as_py() or 0 if self.rows is None else self.rows.nbytes

    @property
    def unread(self) -> dict[int, str]:
        """Returns why, by place, for each record that was not unpacked."""
        return {
            place: (value or b"").decode(errors="replace")
            for place, headers in self.headers.items()
            for name, value in headers
            if name == UNREAD
        }

    def taken(self, places: Sequence[int]) -> Records:
        """Returns the records at `places`, which are in rising order."""
        found = {place: self.headers[place] for place in places if place in self.headers}
        chosen = pa.array(places, pa.int64())
        return Records(
            self.offsets[places],
            self.timestamps_ms[places],
            self.keys.take(chosen),
            self.values.take(chosen),
            {index: found[place] for index, place in enumerate(places) if place in found},
            None if self.rows is None else self.rows.take(chosen),
        )


class Polled:
    """Whole batches that a consumer has polled, until their records are taken."""

    def __init__(self, *, may_hold_rows: bool) -> None:
        """`may_hold_rows`: the batches are of a topic that Fogline alone writes."""
        self._may_hold_rows = may_hold_rows
        self._batches: deque[DefaultRecordBatch | _Part] = deque()
        self._left: Records | None = None  # decoded records that were not taken yet

    def poll(self, consumer: KafkaConsumer, timeout_ms: int) -> None:
        """Polls a consumer for which `read_whole_batches` was called."""
        for polled in consumer.poll(timeout_ms).values():
            self._batches.extend(each.value.batch for each in polled)

    @property
    def next_offset(self) -> int | None:
        """Returns the lowest offset that a record left here can have, or None if none is left. It may lie
        before the `start` of the next take."""
        if self._left is not None:
            return int(self._left.offsets[0])
        return _first_offset(self._batches[0]) if self._batches else None

    def take(self, start: int, end: int) -> Records:
        """Returns the next records with start <= offset < end. There may be more."""
        records, self._left = self._left or self._decoded(), None
        behind = records.between(end, int(records.offsets[-1]) + 1) if len(records) else records
        if len(behind):
            self._left = behind
        return records.between(start, end)

    def _decoded(self) -> Records:
        return _next_records(self._batches, self._may_hold_rows)

    def clear(self) -> None:
        self._batches.clear()
        self._left = None


def records_in(batches: Iterable[DefaultRecordBatch], topic: str) -> Iterator[Records]:
    """Yields the records of batches of one partition of a topic. Rows that lie in columns are columns."""
    left: deque[DefaultRecordBatch | _Part] = deque(batches)
    while left:
        yield _next_records(left, is_own(topic))


def _next_records(given: deque[DefaultRecordBatch | _Part], may_hold_rows: bool) -> Records:
    batches: list[DefaultRecordBatch | _Part] = []
    held: list[tuple[DefaultRecordBatch, Rows]] = []
    count = size = 0
    while given and count < ROWS_AT_ONCE and size < BATCH_BYTES_MAX:
        batch = given[0]
        if not isinstance(batch, _Part):
            unpack(batch)
        rows = rows_in(batch) if may_hold_rows and not isinstance(batch, _Part) else None
        if rows is None and (parts := _cut(batch)):
            given.popleft()
            given.extendleft(reversed(parts))
            continue
        if (held and rows is None) or (batches and rows is not None):
            break  # all of one kind
        if rows is None:
            batches.append(batch)
        elif held and not rows.fields.schema.equals(held[0][1].fields.schema):
            break
        else:
            held.append((batch, rows))
        given.popleft()
        count += batch.records_count
        size += len(batch._buffer)
    return records_of(held) if held else decoded(batches)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the records of a batch that has very many, with what `decoded` asks a batch."""

    batch: DefaultRecordBatch
    first_offset: int
    last_offset_delta: int
    records_count: int
    _buffer: memoryview
    _pos: int = 0

    @property
    def base_offset(self) -> int:
        return int(self.batch.base_offset)


def _first_offset(batch: DefaultRecordBatch | _Part) -> int:
    return batch.first_offset if isinstance(batch, _Part) else int(batch.base_offset)


def _cut(batch: DefaultRecordBatch | _Part) -> list[_Part]:
    """Returns an unpacked batch that has more than ROWS_AT_ONCE records in parts of so many, so that never
    more are decoded at once. Returns nothing for any other one, and for one that is not as it says."""
    count = int(batch.records_count)
    if isinstance(batch, _Part) or count <= ROWS_AT_ONCE:
        return []
    data = memoryview(batch._buffer)[batch._pos :]
    try:
        places = _begins_of(data, count, every=ROWS_AT_ONCE)
        firsts = [_offset_delta(data, place) for place in places]
    except _NOT_AS_IT_SAYS:
        return []
    return [
        _Part(
            batch,
            batch.base_offset + first,
            # As a broker numbers them, for records of which it cannot be read.
            batch.last_offset_delta - max(0, count - (number + 1) * ROWS_AT_ONCE),
            min(ROWS_AT_ONCE, count - number * ROWS_AT_ONCE),
            data[place:end],
        )
        for number, (place, end, first) in enumerate(
            zip(places, [*places[1:], len(data)], firsts, strict=True)
        )
    ]


def _offset_delta(data: memoryview, position: int) -> int:
    _, position = decode_varint(data, position)
    _, position = decode_varint(data, position + 1)  # behind the attributes
    delta, _ = decode_varint(data, position)
    return int(delta)


# -- their records -----------------------------------------------------------------------------------


def records_of(held: Sequence[tuple[DefaultRecordBatch, Rows]]) -> Records:
    """Returns the rows of consecutive batches that hold rows of the same fields."""
    count = sum(len(rows) for _, rows in held)
    return Records(
        np.concatenate([batch.base_offset + np.arange(len(rows)) for batch, rows in held]),
        np.concatenate([rows.times_ms for _, rows in held]),
        pa.concat_arrays([rows.keys for _, rows in held]),
        pa.nulls(count, pa.binary()),
        rows=pa.concat_tables([rows.fields for _, rows in held]),
    )


def decoded(batches: Sequence[DefaultRecordBatch | _Part]) -> Records:
    """Returns all records of consecutive batches. Those of a batch that is not as it says are `unread`.

    The layout: https://kafka.apache.org/documentation/#recordbatch
    """
    bodies, counts, bases = [], [], []
    for batch in batches:
        if isinstance(batch, _Part):
            whole = batch.batch
        else:
            whole = batch
            unpack(batch)
        bodies.append(memoryview(batch._buffer)[batch._pos :])
        counts.append(batch.records_count)
        is_appended = whole.timestamp_type == whole.LOG_APPEND_TIME
        first_ms = whole.max_timestamp if is_appended else whole.first_timestamp
        bases.append((batch.base_offset, first_ms, not is_appended))
    starts = np.array(bases, np.int64).reshape(-1, 3)
    try:
        return _decoded(bodies, counts, starts)
    except _NOT_AS_IT_SAYS:
        readable = [
            _readable(batch, body, starts[place : place + 1])
            for place, (batch, body) in enumerate(zip(batches, bodies, strict=True))
        ]
        # One record may stand for all of a batch.
        return _decoded(readable, [batch.records_count for batch in batches], starts)


# The lengths do not fit, the data ends too early, or a length has too many bytes.
_NOT_AS_IT_SAYS = (CorruptRecordError, IndexError, ValueError)


def _readable(batch: DefaultRecordBatch | _Part, body: memoryview, start: NDArray[np.int64]) -> memoryview:
    """Returns the batch's body, or one whose records say why it cannot be read."""
    try:
        _decoded([body], [batch.records_count], start)
    except _NOT_AS_IT_SAYS as error:
        return memoryview(unread_body(batch, f"its batch is not as it says: {error}"))
    return body


def _decoded(bodies: Sequence[memoryview], counts: Sequence[int], bases: NDArray[np.int64]) -> Records:
    data = b"".join(bodies)
    fields = _Fields(data, _begins(data, [len(body) for body in bodies], counts))
    lengths = fields.numbers()
    ends = fields.at + lengths
    fields.at += 1  # the attributes
    base, first_ms, is_counted = np.repeat(bases, counts, axis=0).T
    timestamps_ms = first_ms + fields.numbers() * is_counted
    offsets = base + fields.numbers()
    keys, values = fields.texts(ends), fields.texts(ends)
    with_headers = fields.at
    places = np.flatnonzero(fields.numbers()).tolist()
    headers = {}
    for place in places:
        headers[place], fields.at[place] = _headers(data, int(with_headers[place]))
    if not np.array_equal(fields.at, ends):
        raise CorruptRecordError("the parts of a record are not as long as the record")
    return Records(offsets, timestamps_ms, keys, values, headers)


def _begins(data: bytes, sizes: Sequence[int], counts: Sequence[int]) -> NDArray[np.int64]:
    """Returns where each record begins."""
    likely = _likely_begins(data)
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    batches = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # No batch that is empty: it would begin where the next one does.
    if len(likely) == sum(counts) and min(counts, default=0) and np.array_equal(likely[firsts], batches):
        return likely
    return _begins_one_by_one(data, sizes, counts)


def _likely_begins(data: bytes) -> NDArray[np.int64]:
    """Returns where all records begin, or nothing if that cannot be seen at a glance.

    A record ends with the number of its headers. Most often that is a zero, and there are few other zeros in
    texts. Behind it lies the length of the next record, and then a zero for its attributes. It is certain
    that records begin at such places if each of them ends where the next one begins.
    """
    given = np.frombuffer(data, np.uint8)
    is_zero = given == 0
    # The length has one or two bytes.
    between = is_zero[:-3] & (is_zero[2:-1] | is_zero[3:])
    found: NDArray[np.int64] = np.concatenate([[0], np.flatnonzero(between) + 1])
    found = found[found + RECORD_BYTES_MIN < len(given)]
    first, second, third = given[found], given[found + 1], given[found + 2]
    is_short = first < 0x80
    is_begin = np.where(is_short, second, third | (second & 0x80)) == 0
    found, is_short = found[is_begin], is_short[is_begin]
    low, high = first[is_begin].astype(np.int64) & 0x7F, second[is_begin].astype(np.int64)
    length = np.where(is_short, low, low | high << 7) >> 1
    is_long_enough = length >= RECORD_BYTES_MIN
    begins: NDArray[np.int64] = found[is_long_enough]
    ends = (begins + np.where(is_short, 1, 2)[is_long_enough]) + length[is_long_enough]
    is_chain = np.array_equal(ends, np.append(begins[1:], len(given)))
    return begins if is_chain else begins[:0]


def _begins_one_by_one(data: bytes, sizes: Sequence[int], counts: Sequence[int]) -> NDArray[np.int64]:
    """A record's length says where the next one begins."""
    begins: list[int] = []
    batch_begin = 0
    for size, count in zip(sizes, counts, strict=True):
        batch = memoryview(data)[batch_begin : batch_begin + size]
        begins += [batch_begin + place for place in _begins_of(batch, count)]
        batch_begin += size
    return np.array(begins, np.int64)


def _begins_of(data: memoryview, count: int, *, every: int = 1) -> list[int]:
    """Returns where the first of each `every` of a batch's records begins. Raises if the batch is not as it
    says: CorruptRecordError, IndexError or ValueError."""
    if count > len(data) // (1 + RECORD_BYTES_MIN):
        raise CorruptRecordError(f"its {len(data):,} bytes cannot be {count:,} records")
    begins: list[int] = []
    position = 0
    for place in range(count):
        if place % every == 0:
            begins.append(position)
        first = data[position]
        if first < 0x80:  # the usual lengths; does what decode_varint does
            position += 1 + (first >> 1)
        elif (second := data[position + 1]) < 0x80:
            position += 2 + ((first & 0x7F | second << 7) >> 1)
        else:
            length, position = decode_varint(data, position)
            position += length
    if position != len(data):
        raise CorruptRecordError("the records of a batch are not as long as the batch")
    return begins


_1 = np.uint64(1)


class _Fields:
    """The fields of many records side by side. Each field is read at `at`, where the one before ended."""

    def __init__(self, data: bytes, at: NDArray[np.int64]) -> None:
        self._bytes = np.frombuffer(data, np.uint8)
        self.at = at

    def numbers(self) -> NDArray[np.int64]:
        """Returns the next varint of each record: seven bits a byte, the lowest first. The lowest bit of all
        is the sign."""
        found = self._bytes[self.at]
        number = (found & 0x7F).astype(np.uint64)
        self.at = self.at + 1
        longer, shift = np.flatnonzero(found >= 0x80), 7
        while len(longer) and shift < 64:
            found = self._bytes[self.at[longer]]
            number[longer] |= (found & 0x7F).astype(np.uint64) << np.uint64(shift)
            self.at[longer] += 1
            longer, shift = longer[found >= 0x80], shift + 7
        signed: NDArray[np.int64] = ((number >> _1) ^ np.negative(number & _1)).view(np.int64)
        return signed

    def texts(self, record_ends: NDArray[np.int64]) -> pa.BinaryArray:
        """Returns the next text of each record. A length stands before each; a negative one stands for
        null. Raises CorruptRecordError if a text goes on behind its record's end."""
        sizes = self.numbers()
        begins, lengths = self.at, np.maximum(sizes, 0)
        self.at = begins + lengths
        end = len(self._bytes)
        if len(begins) and (lengths.max() > end or begins.min() < 0 or self.at.max() > end):
            raise IndexError("a text ends behind the data")
        if (self.at > record_ends).any():  # so no two texts overlap
            raise CorruptRecordError("a text is longer than its record")
        found = cut_texts(self._bytes, begins, self.at, pa.binary())
        is_null = sizes < 0
        return pc.if_else(pa.array(is_null), pa.scalar(None, pa.binary()), found) if is_null.any() else found


def _headers(data: bytes, position: int) -> tuple[Headers, int]:
    """Returns a record's headers, and where they end."""
    count, position = decode_varint(data, position)
    if count < 0:
        raise CorruptRecordError(f"a record has {count} headers")
    found = []
    for _ in range(count):
        name, position = _text(data, position)
        value, position = _text(data, position)
        if name is None:
            raise CorruptRecordError("a header has no name")
        found.append((name.decode(errors="backslashreplace"), value))
    return tuple(found), position


def _text(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = decode_varint(data, position)
    end = position + max(size, 0)
    return (None if size < 0 else data[position:end]), end
