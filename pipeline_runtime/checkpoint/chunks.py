"""Chunks: pieces of files, addressed by the sha256 of their raw bytes, and their compressed form.

An encoded chunk has 1 byte codec (0 raw, 1 zstd), 4 bytes raw size (big-endian) and the payload. This form is
stored in the database and sent over the network, so a chunk is compressed only once.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipeline_runtime.checkpoint.errors import CheckpointDamaged

# Pieces of a fixed size suffice. Spark's state files are written once under unique names, and the files of
# sinks grow at their end, so content never shifts within a file.
CHUNK_BYTES = 1 << 20
ENCODED_BYTES_MAX = CHUNK_BYTES + 1024

_HEADER = struct.Struct(">BI")
_FRAME = struct.Struct(">32sI")
_RAW, _ZSTD = 0, 1


def address(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def encode(raw: bytes) -> bytes:
    packed: bytes = pa.Codec("zstd", compression_level=1).compress(raw, asbytes=True) if raw else b""
    if len(packed) < len(raw):
        return _HEADER.pack(_ZSTD, len(raw)) + packed
    return _HEADER.pack(_RAW, len(raw)) + raw


def decode(sha: str, encoded: bytes) -> bytes:
    """Returns the raw bytes of chunk `sha`. Raises CheckpointDamaged when `encoded` is anything else."""
    try:
        codec, size = _HEADER.unpack_from(encoded)
        if size > CHUNK_BYTES or codec not in (_RAW, _ZSTD):
            raise ValueError("bad header")
        raw = encoded[_HEADER.size :]
        if codec == _ZSTD:
            raw = pa.Codec("zstd").decompress(raw, decompressed_size=size, asbytes=True)
        if len(raw) != size or address(raw) != sha:
            raise ValueError("hash does not agree")
    except (ValueError, struct.error, OSError, pa.ArrowException) as error:
        raise CheckpointDamaged(
            f"Chunk {sha[:12]}… is damaged ({error}).",
            "Checkpoints that do not use this chunk are not affected.",
            "Fogline uses the next older checkpoint. Check the disk that held this one.",
        ) from error
    return raw


def frames(chunks: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yields encoded chunks as one stream: 32 bytes hash, 4 bytes length, the encoded chunk, and so on."""
    for sha, encoded in chunks:
        yield _FRAME.pack(bytes.fromhex(sha), len(encoded)) + encoded


class Unframer:
    """The inverse of `frames`, for pieces of any size. Bytes after the last whole frame are kept for the next
    piece."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yields (address, encoded chunk) of each frame that is now whole. The chunks are not verified."""
        self._pending += piece
        position = 0
        try:
            while position + _FRAME.size <= len(self._pending):
                digest, length = _FRAME.unpack_from(self._pending, position)
                if length > ENCODED_BYTES_MAX:
                    raise CheckpointDamaged(
                        "A stream of chunks cannot be read: one of its frames has an impossible length.",
                        "Chunks that arrived before are kept.",
                        "Try again. If this repeats, check that both sides have the same version.",
                    )
                end = position + _FRAME.size + length
                if end > len(self._pending):
                    break
                encoded = bytes(self._pending[position + _FRAME.size : end])
                position = end
                yield digest.hex(), encoded
        finally:
            del self._pending[:position]
