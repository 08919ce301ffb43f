"""Unpacks compressed batches of records within bounds.

25 KB of zstd may unpack to 800 MB, and a node that unpacks them has no memory left for anything else. So a
batch is unpacked piece by piece, and at most BATCH_BYTES_MAX of it are kept. In place of each record that is
left out stands one without a value, whose header UNREAD says why. Its reader makes a dead letter of it.

The layout of batches and records: https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

import gzip
import io
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any, Protocol

import snappy
import zstandard
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import encode_varint
from lz4 import frame as lz4

BATCH_BYTES_MAX = 32 * 1024 * 1024
"""The most bytes that are kept of one batch when it is unpacked. Kafka's own producers make smaller ones:
their `buffer.memory` is 32 MiB."""
SKIPPED_BYTES_MAX = 1024 * 1024 * 1024
"""The most bytes that are unpacked and thrown away to find the records behind a large one: about a second."""
STUBS_MAX = 20_000
"""The most records of a batch that are left out one by one. One stands for all that follow these. It must not
be less than `incoming.ROWS_AT_ONCE`."""
RECORD_BYTES_MIN = 6
"""The fewest bytes of a record behind its length: six fields of one byte."""
UNREAD = "fogline-unread"
"""The header of a record that stands for one which was left out. Its value says why."""

_PIECE = 256 * 1024
_WINDOW_BYTES_MAX = 32 * 1024 * 1024  # what zstd may need beside its output
_BLOCK_BYTES_MAX = BATCH_BYTES_MAX  # of snappy, which unpacks block by block
_NUMBER_BYTES_MAX = 10  # of a varint of 64 bits
_of_thread = threading.local()


class Unpackable(Exception):
    """The compressed bytes of a batch cannot be unpacked; the text says why."""


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


def unpack_within_bounds() -> None:
    """Makes every client of this process unpack within bounds, including those that are open. Then the names
    of headers may be any bytes, too: a client in C writes what it is given."""
    DefaultRecordBatch._maybe_uncompress = unpack
    DefaultRecordBatch._read_msg = _with_any_names


_read_msg = DefaultRecordBatch._read_msg


@wraps(_read_msg)
def _with_any_names(batch: DefaultRecordBatch, *args: Any, **options: Any) -> Any:
    try:
        return _read_msg(batch, *args, **options)
    except UnicodeDecodeError:
        batch._buffer = _AnyNames(batch._buffer)
        return _read_msg(batch, *args, **options)


class _AnyNames(bytearray):
    """The bytes of records, of which each part can be made a text."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _AnyNames(found) if isinstance(place, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "") -> str:
        return bytes(self).decode(encoding, errors or "backslashreplace")


def unpack(batch: DefaultRecordBatch) -> None:
    """Unpacks the batch's records, as kafka-python's method does which this replaces."""
    if batch._decompressed:
        return
    if batch.compression_type != batch.CODEC_NONE:
        packed = bytes(memoryview(batch._buffer)[batch._pos :])
        batch._buffer, batch._pos = _body(packed, batch), 0
    batch._decompressed = True


def _body(packed: bytes, batch: DefaultRecordBatch) -> bytes | bytearray:
    open_reader = _READERS.get(batch.compression_type)
    if open_reader is None:
        reason = f"its compression, number {batch.compression_type}, is not known"
        return unread_body(batch, reason)
    try:
        whole = _whole(packed, batch) or _read(open_reader(packed), BATCH_BYTES_MAX + 1)
    except _ERRORS as error:
        return _joined(_bounded(packed, open_reader, batch, _said(error)))
    if len(whole) <= BATCH_BYTES_MAX:
        return whole
    del whole
    return _joined(_bounded(packed, open_reader, batch, ""))


def _whole(packed: bytes, batch: DefaultRecordBatch) -> bytes | None:
    """Returns what is unpacked at once, or None if it does not say how large it becomes, or too much."""
    if batch.compression_type != batch.CODEC_ZSTD:
        return None
    with suppress(zstandard.ZstdError):
        if 0 < zstandard.frame_content_size(packed) <= BATCH_BYTES_MAX:
            return zstd_of_thread().decompress(packed, allow_extra_data=False)
    return None


def zstd_of_thread() -> zstandard.ZstdDecompressor:
    """Returns the thread's own: to make one takes a hundred times what a small batch takes, and one cannot
    serve two threads at once."""
    found: zstandard.ZstdDecompressor | None = getattr(_of_thread, "zstd", None)
    if found is None:
        found = _of_thread.zstd = zstandard.ZstdDecompressor()
    return found


def _joined(pieces: Iterator[bytes]) -> bytearray:
    """Returns all pieces in one. `bytes.join` would hold millions of small ones first."""
    whole = bytearray()
    for piece in pieces:
        whole += piece
    return whole


def _bounded(
    packed: bytes, open_reader: Callable[[bytes], _Reader], batch: DefaultRecordBatch, problem: str
) -> Iterator[bytes]:
    """Yields the records as far as they fit, and a stub for each that does not. `problem` is why the bytes
    could not be unpacked, or empty if they are only too many."""
    count, done = int(batch.records_count), 0
    kept = passed = stubs = 0
    too_large = f"it is more than {BATCH_BYTES_MAX:,} bytes large when it is unpacked, with its batch"
    try:
        reader = open_reader(packed)
        while done < count:
            size, prefix = _number(reader)
            if 0 <= size < RECORD_BYTES_MIN:
                raise Unpackable("a record is shorter than its fields")
            if kept + len(prefix) + size <= BATCH_BYTES_MAX:
                body = _exactly(reader, size)
                kept += len(prefix) + size
                yield prefix + body
            else:
                passed, stubs = passed + size, stubs + 1
                if size < 0 or passed > SKIPPED_BYTES_MAX or stubs > STUBS_MAX:
                    break
                yield _passed_over(reader, size, f"it has {size:,} bytes when it is unpacked; {_MOST}")
            done += 1
    except _ERRORS as error:
        problem = problem or _said(error)
    reason = f"its batch cannot be unpacked: {problem}" if problem else too_large
    yield from _stubs(batch, done, reason)


_MOST = f"at most {BATCH_BYTES_MAX:,} of a batch are read"


def _passed_over(reader: _Reader, size: int, reason: str) -> bytes:
    """Reads past a record of so many bytes, and returns one that stands for it."""
    _exactly(reader, 1)  # the attributes
    _, time_delta = _number(reader)
    _, offset_delta = _number(reader)
    left = size - 1 - len(time_delta) - len(offset_delta)
    while left > 0:
        left -= len(_exactly(reader, min(left, _PIECE)))
    return _stub(time_delta, offset_delta, reason)


def unread_body(batch: DefaultRecordBatch, reason: str) -> bytes:
    """Returns records in place of those of the batch, which say why they were not read. If they would be very
    many, one stands for all, and the batch's number of records is 1."""
    return b"".join(_stubs(batch, 0, reason))


def _stubs(batch: DefaultRecordBatch, first: int, reason: str) -> Iterator[bytes]:
    """Yields what stands for all records of the batch from the one at place `first`. A broker numbers the
    records of a batch without a gap. Only compaction leaves gaps, and then the last numbers are taken.

    The number of records is what the batch says of itself, so few bytes may say two billions.
    """
    count = int(batch.records_count)
    if count < 0 or count - first > STUBS_MAX:
        batch._header_data = (*batch._header_data[:-1], first + 1)
        said = f"{reason}; this stands for all of its {count:,} records from number {first + 1:,} on"
        yield _stub(b"\0", _varint(max(0, int(batch.last_offset_delta))), said)
        return
    for place in range(first, count):
        delta = max(0, int(batch.last_offset_delta) - (count - 1 - place))
        yield _stub(b"\0", _varint(delta), reason)


def _stub(time_delta: bytes, offset_delta: bytes, reason: str) -> bytes:
    """Returns a record without key and value, whose header says why."""
    body = b"\0" + time_delta + offset_delta + b"\1\1" + _varint(1)  # one header
    for text in (UNREAD.encode(), reason.encode()[:1000]):
        body += _varint(len(text)) + text
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    made = bytearray()
    encode_varint(number, made.append)
    return bytes(made)


def _number(reader: _Reader) -> tuple[int, bytes]:
    """Returns the varint that comes next, and its bytes."""
    found, number = b"", 0
    while len(found) < _NUMBER_BYTES_MAX:
        byte = _exactly(reader, 1)
        number |= (byte[0] & 0x7F) << (7 * len(found))
        found += byte
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1), found
    raise Unpackable("a length has too many bytes")


def _said(error: Exception) -> str:
    return str(error) or "its bytes are damaged"


def _exactly(reader: _Reader, size: int) -> bytes:
    if size < 0:
        raise Unpackable("a record has a negative length")
    found = _read(reader, size)
    if len(found) < size:
        raise Unpackable("it ends in the middle of a record")
    return found


def _read(reader: _Reader, size: int) -> bytes:
    """Returns the next `size` bytes, or fewer at the end."""
    pieces, left = [], size
    while left > 0 and (piece := reader.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


class _SnappyBlocks:
    """Unpacks snappy, which says before each block how large it becomes.

    Java's clients write a header of 16 bytes and blocks of some 32 KiB, others one block alone.
    """

    _MAGIC = b"\x82SNAPPY\0"

    def __init__(self, packed: bytes) -> None:
        self._blocks = self._of_java(packed) if packed[:8] == self._MAGIC else iter((packed,))
        self._block = io.BytesIO()

    @staticmethod
    def _of_java(packed: bytes) -> Iterator[bytes]:
        position = 16
        while position < len(packed):
            size = int.from_bytes(packed[position : position + 4], "big")
            yield packed[position + 4 : position + 4 + size]
            position += 4 + size

    def read(self, size: int, /) -> bytes:
        while not (found := self._block.read(size)):
            block = next(self._blocks, None)
            if block is None:
                break
            if _unpacked_size(block) > _BLOCK_BYTES_MAX:
                raise Unpackable(f"a block of snappy is to become more than {_BLOCK_BYTES_MAX:,} bytes large")
            self._block = io.BytesIO(snappy.decompress(block))
        return found


def _unpacked_size(block: bytes) -> int:
    """Returns the size that a block of snappy says it has when it is unpacked."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise Unpackable("a block of snappy does not say how large it becomes")


def _zstd(packed: bytes) -> _Reader:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES_MAX)
    reader: Any = unpacker.stream_reader(io.BytesIO(packed), read_across_frames=True)
    return reader  # type: ignore[no-any-return]


_READERS: dict[int, Callable[[bytes], _Reader]] = {
    DefaultRecordBatch.CODEC_GZIP: lambda packed: gzip.GzipFile(fileobj=io.BytesIO(packed)),
    DefaultRecordBatch.CODEC_SNAPPY: _SnappyBlocks,
    DefaultRecordBatch.CODEC_LZ4: lambda packed: lz4.LZ4FrameFile(io.BytesIO(packed)),
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}
# The libraries' errors for bytes that are not what they should be. EOFError: they end too early.
_ERRORS = (
    Unpackable,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    zlib.error,
    zstandard.ZstdError,
    snappy.UncompressError,
)
