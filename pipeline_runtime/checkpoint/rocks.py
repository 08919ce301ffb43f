"""Keys and options of the StateDatabase's RocksDB; see database."""

from __future__ import annotations

import struct

from rocksdict import Options, WriteOptions

from pipeline_runtime.checkpoint.manifest import SHA256
from pipeline_runtime.model.ids import Seq

SEQ = struct.Struct(">Q")


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
    # Small: a node holds a family per group, and every family has its own buffers.
    made.set_write_buffer_size(8 << 20)
    made.set_max_total_wal_size(64 << 20)
    made.set_keep_log_file_num(3)
    made.set_max_log_file_size(1 << 20)
    return made


def synced() -> WriteOptions:
    made = WriteOptions()
    made.sync = True
    return made
