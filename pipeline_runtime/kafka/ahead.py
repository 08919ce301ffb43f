"""Passes records that were read ahead to the process that needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from kafka.record.default_records import DefaultRecordBatch

from pipeline_runtime.kafka.incoming import Records, records_in
from pipeline_runtime.kafka.whole_batches import WholeBatch


def pack(record: Any) -> list[Any]:
    """Returns a consumer's record as [offset, timestamp, key, value, names and values of its headers], and a
    whole batch as [its header, its records as they lie in the topic, not compressed]."""
    if isinstance(record.value, WholeBatch):
        batch = record.value.batch
        header = DefaultRecordBatch.HEADER_STRUCT.pack(*batch._header_data)
        return [header, memoryview(batch._buffer)[batch._pos :]]
    headers = [[name, value] for name, value in record.headers]
    return [record.offset, record.timestamp, record.key, record.value, headers]


def unpack(packed: Sequence[list[Any]], topic: str) -> Iterator[Records]:
    """Yields all records of one or more of one partition of a topic that were packed, in the order of their
    offsets. A whole batch may have some before and behind those that were asked for."""
    for is_whole, several in groupby(packed, lambda each: len(each) == 2):
        if is_whole:
            yield from records_in([_batch(*each) for each in several], topic)
        else:
            yield _records(several)


def _batch(header: bytes, body: bytes) -> DefaultRecordBatch:
    batch = DefaultRecordBatch(header + body)
    batch._decompressed = True
    return batch


def _records(packed: Iterator[list[Any]]) -> Records:
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
