"""Keys, options and look-ups of the StateDatabase's RocksDB; see database."""

from __future__ import annotations

import logging
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import Options, Rdict, WriteOptions

from pipeline_runtime.checkpoint.manifest import SHA256
from pipeline_runtime.model.ids import Seq

SEQ = struct.Struct(">Q")
_log = logging.getLogger(__name__)


def chunk_key(sha: str) -> bytes:
    return b"c" + _digest(sha)


def index_key(sha: str) -> bytes:
    return b"i" + _digest(sha)


def _digest(sha: str) -> bytes:
    if not SHA256.fullmatch(sha):
        raise ValueError(f"{sha!r} is not a sha256")
    return bytes.fromhex(sha)


def manifest_key(seq: Seq) -> bytes:
    return b"m" + SEQ.pack(seq)


def options() -> Options:
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    # Small, since a node holds a family for each group, and every family has its own buffers.
    made.set_write_buffer_size(8 << 20)
    made.set_max_total_wal_size(64 << 20)
    made.set_keep_log_file_num(3)
    made.set_max_log_file_size(1 << 20)
    return made


def synced() -> WriteOptions:
    made = WriteOptions()
    made.sync = True
    return made


def absent(family: Rdict, shas: Collection[str]) -> set[str]:
    """Returns the chunks that are not in the index."""
    keys = list(shas)
    if not keys:
        return set()
    found = family.get([index_key(sha) for sha in keys])
    return {sha for sha, size in zip(keys, found or [], strict=True) if size is None}


def entries(family: Rdict, prefix: bytes) -> list[tuple[bytes, bytes]]:
    """Returns all entries of one kind, as a list: an iterator that is left open keeps the database locked."""
    found: list[tuple[bytes, bytes]] = []
    cursor = family.iter()
    try:
        cursor.seek(prefix)
        while cursor.valid():
            key, value = cursor.key(), cursor.value()
            if not key.startswith(prefix):
                break
            found.append((key, value))
            cursor.next()
        # The cursor also ends at a block that it cannot read. Then `status` raises an error.
        cursor.status()
    finally:
        del cursor  # an error's traceback would keep it
    return found


@contextmanager
def closing(path: Path) -> Iterator[None]:
    """Logs why a database could not be closed. Closing writes what is in memory, which fails on a full disk.
    The data is then in the log, if anywhere."""
    try:
        yield
    except Exception as error:
        _log.warning("closing %s: %s", path, error)
