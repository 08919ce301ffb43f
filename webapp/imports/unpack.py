"""Packed files: which kinds there are, and their bytes, a bounded part at a time."""

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
"""The file says how much memory its unpacking takes: 65 MiB at most if `xz` has packed it."""

_READ_BYTES = 64 << 10

BROKEN = (
    *(zlib.error, lzma.LZMAError, pa.ArrowException),
    *(EOFError, zipfile.BadZipFile, gzip.BadGzipFile, NotImplementedError),
)
"""What is raised for a file that cannot be unpacked. An OSError without a number is one as well."""


def is_broken(error: BaseException) -> bool:
    """Whether an error says that a file cannot be unpacked, rather than that it cannot be read from disk."""
    return isinstance(error, BROKEN) or (isinstance(error, OSError) and error.errno is None)


def compression_of(begin: bytes) -> Compression:
    """Returns how a file with these first bytes is packed: "" if it is not."""
    return next((kind for mark, kind in _BEGINNINGS.items() if begin.startswith(mark)), "")


def unpack(file: IO[bytes], compression: Compression) -> IO[bytes]:
    """Returns the unpacked bytes of a file, which is read from its beginning. A zip archive is none."""
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
    """A file that Arrow does not close."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)


class _Zstd(io.RawIOBase):
    """Frames of zstd, one behind the other. Arrow needs 128 MiB at most, and says if a part is missing."""

    def __init__(self, file: IO[bytes]) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(_KeptOpen(file), mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class _Xz(io.RawIOBase):
    """Streams of xz, one behind the other. Raises LZMAError and EOFError."""

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
                data = data.lstrip(b"\0")  # streams may have zeros between them
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
