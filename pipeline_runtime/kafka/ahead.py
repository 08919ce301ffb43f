"""Passes records that were read ahead to the process that needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_runtime.kafka.incoming import Records


def pack(record: Any) -> list[Any]:
    """Returns a consumer's record as [offset, timestamp, key, value, names and values of its headers]."""
    headers = [[name, value] for name, value in record.headers]
    return [record.offset, record.timestamp, record.key, record.value, headers]


def unpack(packed: list[list[Any]]) -> Records:
    """Returns one or more records of one partition, in the order of their offsets."""
    offsets, timestamps_ms, keys, values, headers = zip(*packed, strict=True)
    return Records(
        np.array(offsets, np.int64),
        np.array(timestamps_ms, np.int64),
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        {
            place: tuple((name, value) for name, value in pairs)
            for place, pairs in enumerate(headers)
            if pairs
        },
    )
