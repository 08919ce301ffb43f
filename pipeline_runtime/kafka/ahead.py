"""Passes records that were read ahead, as JSON, to the process that needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_runtime.kafka.incoming import Records

_TEXT = ("utf-8", "surrogateescape")  # keeps any bytes as they were


def pack(record: Any) -> list[Any]:
    """Returns a consumer's record as [offset, timestamp, key, value, names and values of its headers]."""
    headers = [[name, _text(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, _text(record.key), _text(record.value), headers]


def unpack(packed: list[list[Any]]) -> Records:
    """Returns one or more records of one partition, in the order of their offsets."""
    offsets, timestamps_ms, keys, values, headers = zip(*packed, strict=True)
    return Records(
        np.array(offsets, np.int64),
        np.array(timestamps_ms, np.int64),
        pa.array([_bytes(key) for key in keys], pa.binary()),
        pa.array([_bytes(value) for value in values], pa.binary()),
        {
            place: tuple((name, _bytes(text)) for name, text in pairs)
            for place, pairs in enumerate(headers)
            if pairs
        },
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(*_TEXT)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(*_TEXT)
