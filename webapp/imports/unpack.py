"""Unpacks files: knows the kinds of packed files, and reads a bounded part of their bytes at a time."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from typing import IO, Any, Literal, cast

import pyarrow as pa

Compression = Literal["", "gzip", "bzip2", "xz", "zstd", "zip"]
_BEGINNINGS: dict[bytes, Compression] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
BEGINNING_BYTES = max(map(len, _BEGINNINGS))
XZ_MEMORY_BYTES = 128 << 20
"""The memory limit for unpacking xz. The file names how much memory it needs: at most 65 MiB if `xz` has
packed it."""

_READ_BYTES = 64 << 10

BROKEN = (
    *(zlib.error, lzma.LZMAError, pa.ArrowException),
    *(EOFError, zipfile.BadZipFile, gzip.BadGzipFile, NotImplementedError),
)
"""The errors of files that cannot be unpacked. An OSError without a number means the same."""


def is_broken(error: BaseException) -> bool:
    """Returns whether an error means that a file cannot be unpacked. Otherwise the disk could not be read."""
    return isinstance(error, BROKEN) or (isinstance(error, OSError) and error.errno is None)


def compression_of(begin: bytes) -> Compression:
    """Returns the kind of a packed file by its first bytes, or "" for a file that is not packed."""
    return next((kind for mark, kind in _BEGINNINGS.items() if begin.startswith(mark)), "")


def unpack(file: IO[bytes], compression: Compression) -> IO[bytes]:
    """Returns the unpacked bytes of a file, read from its beginning. It does not unpack zip archives."""
    file.seek(0)
    if compression == "gzip":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if compression == "bzip2":
        return cast(IO[bytes], bz2.BZ2File(file))
    if compression == "xz":
        return io.BufferedReader(_Xz(file), _READ_BYTES)
    if compression == "zstd":
        return io.BufferedReader(_Zstd(file), _READ_BYTES)
    return file


class _KeptOpen(io.RawIOBase):
    """A file that stays open when Arrow closes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)


class _Zstd(io.RawIOBase):
    """Reads frames of zstd, one after the other. Arrow needs at most 128 MiB of memory, and reports a missing
    part."""

    def __init__(self, file: IO[bytes]) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(_KeptOpen(file), mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class _Xz(io.RawIOBase):
    """Reads streams of xz, one after the other. Raises LZMAError and EOFError."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder: lzma.LZMADecompressor | None = None
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            data = self._waiting or (
                self._file.read(_READ_BYTES) if self._decoder is None or self._decoder.needs_input else b""
            )
            self._waiting = b""
            if self._decoder is None:
                data = data.lstrip(b"\0")  # zeros may stand between two streams
                if not data:
                    return 0
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)
            elif not data and self._decoder.needs_input:
                raise EOFError("it ends before its last part")
            found = self._decoder.decompress(data, max_length=len(buffer))
            if self._decoder.eof:
                self._waiting, self._decoder = self._decoder.unused_data, None
            if found:
                buffer[: len(found)] = found
                return len(found)
