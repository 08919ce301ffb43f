"""Records on the node's disk, in order, while Kafka is away.

    <directory>/00000001.spool, 00000002.spool, ...   frames, append-only
    <directory>/mark                                  how far the oldest of them was sent

What `append` has taken is on the disk when it returns. What was sent is removed by whole files, so after a
kill some records may be sent again. A frame that a kill has cut in two was never acknowledged; it is dropped.
What cannot be read for another reason is passed, up to the end of its file, and counted in `broken_bytes`.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pipeline_runtime.connectors.sdk import Record
from pipeline_runtime.disk import sync_directory

SEGMENT_BYTES = 8 << 20
# The length of key and value, the CRC-32 of both, the time or -1, the length of the key or -1.
_FRAME = struct.Struct("<IIqi")
_NO_TIME = -1


class Spool:
    """Used by one thread at a time. `bytes_max` bounds all files together."""

    def __init__(self, directory: Path, bytes_max: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._segment_bytes = segment_bytes
        directory.mkdir(parents=True, exist_ok=True)
        self._file: int | None = None
        self.broken_bytes = 0
        """Bytes that were on the disk and cannot be read; the caller sets it to 0."""
        self.newest_ms: int | None = None
        """The time of the newest record that an earlier process has left, if it has one."""
        self._sizes: dict[int, int] = {}
        numbers = sorted(int(path.stem) for path in directory.glob("*.spool"))
        for number in numbers:
            whole, cut, newest_ms = _cut(self._path(number))
            self.newest_ms = newest_ms if newest_ms is not None else self.newest_ms
            if number != numbers[-1]:
                self.broken_bytes += cut
            if whole:
                self._sizes[number] = whole
            else:  # it would never be sent, and so never be removed
                self._path(number).unlink()
        self._segments = list(self._sizes)
        self._mark = self._read_mark()

    @property
    def bytes(self) -> int:
        """Returns how many bytes of the disk it takes."""
        return sum(self._sizes.values())

    @property
    def is_empty(self) -> bool:
        return not self._segments or (
            len(self._segments) == 1 and self._mark >= self._sizes[self._segments[0]]
        )

    def append(self, records: Sequence[Record]) -> bool:
        """Returns False if there is no room for all of them: then none was taken. Raises OSError if the disk
        refuses; then none counts as taken either."""
        frames = b"".join(map(_frame, records))
        if self.bytes + len(frames) > self._bytes_max:
            return False
        number = self._last(len(frames))
        path, before = self._path(number), self._sizes[number]
        if self._file is None:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            sync_directory(self._directory)
        try:
            _write_all(self._file, frames)
            os.fsync(self._file)
        except OSError:
            os.truncate(path, before)
            raise
        self._sizes[number] = before + len(frames)
        return True

    def read(self, bytes_max: int) -> tuple[list[Record], int]:
        """Returns the oldest records, about so many bytes of them, and the mark after them for `sent`."""
        if not self._segments:
            return [], 0
        number = self._segments[0]
        with open(self._path(number), "rb") as file:
            file.seek(self._mark)
            data = file.read(max(bytes_max, _FRAME.size))
            found = list(_records(data))
            if not found and len(data) >= _FRAME.size:  # one record may be larger than that
                length = _FRAME.unpack_from(data)[0]
                found = list(_records(data + file.read(max(0, _FRAME.size + length - len(data)))))
        if found:
            return [record for record, _ in found], self._mark + found[-1][1]
        self.broken_bytes += self._sizes[number] - self._mark
        return [], self._sizes[number]

    def sent(self, mark: int) -> None:
        """Notes that Kafka has all records before the mark."""
        number = self._segments[0]
        if mark < self._sizes[number]:
            self._write_mark(mark)
            return
        if number == self._segments[-1]:
            self._close()
        # In this order: a mark that outlived its file would count for a later one of the same number. No
        # space is needed for it, so a full disk becomes empty again.
        self._mark = 0
        (self._directory / "mark").unlink(missing_ok=True)
        self._path(number).unlink(missing_ok=True)
        self._segments.pop(0)
        del self._sizes[number]

    def close(self) -> None:
        self._close()

    def _last(self, more: int) -> int:
        """Returns the number of the file that takes so many bytes more."""
        size = self._sizes[self._segments[-1]] if self._segments else None
        if size is not None and (not size or size + more <= self._segment_bytes):
            return self._segments[-1]
        self._close()
        number = self._segments[-1] + 1 if self._segments else 1
        self._segments.append(number)
        self._sizes[number] = 0
        return number

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:08}.spool"

    def _read_mark(self) -> int:
        """The mark belongs to the oldest file, and names it."""
        try:
            number, mark = (self._directory / "mark").read_text().split()
        except (OSError, ValueError):
            return 0
        return int(mark) if self._segments and int(number) == self._segments[0] else 0

    def _write_mark(self, mark: int) -> None:
        self._mark = mark
        path = self._directory / "mark"
        fresh = path.with_suffix(".new")
        with suppress(OSError):  # the disk is full: after a kill the records come again
            fresh.write_text(f"{self._segments[0]} {mark}")
            fresh.replace(path)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _frame(record: Record) -> bytes:
    key = record.key or b""
    body = key + record.value
    time_ms = _NO_TIME if record.time_ms is None else record.time_ms
    key_length = -1 if record.key is None else len(key)
    return _FRAME.pack(len(body), zlib.crc32(body), time_ms, key_length) + body


def _records(data: bytes) -> Iterator[tuple[Record, int]]:
    """Yields the whole frames at the beginning of the data, each with the place behind it."""
    at = 0
    while at + _FRAME.size <= len(data):
        length, crc, time_ms, key_length = _FRAME.unpack_from(data, at)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        if len(body) < length or zlib.crc32(body) != crc:
            return
        key = None if key_length < 0 else body[:key_length]
        at += _FRAME.size + length
        yield Record(body[max(0, key_length) :], None if time_ms == _NO_TIME else time_ms, key), at


def _cut(path: Path) -> tuple[int, int, int | None]:
    """Cuts a file behind its last whole frame. Returns its length, how many bytes were cut, and the time of
    its last record."""
    data = path.read_bytes()
    whole, newest_ms = 0, None
    for record, end in _records(data):
        whole, newest_ms = end, record.time_ms
    if whole < len(data):
        os.truncate(path, whole)
    return whole, len(data) - whole, newest_ms
