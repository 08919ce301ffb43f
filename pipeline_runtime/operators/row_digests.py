"""Digests of rows: 16 bytes that are equal if the rows are equal in some columns."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

DIGEST = np.dtype("V16")
_CELL_BYTES = 9  # whether there is a value, and the value, or how long its text is
_INT64 = pa.int64()


def row_digests(table: pa.Table, names: Sequence[str]) -> NDArray[np.void]:
    """Returns the digest of each row. Null equals null, and 0.0 is another number than -0.0.

    A single value that is no text is its own digest. Otherwise it is a hash, which nobody can aim at.
    """
    cells, texts = np.zeros((len(table), len(names), _CELL_BYTES), np.uint8), []
    for place, name in enumerate(names):
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            texts.append(pc.fill_null(column, "").cast(pa.binary()))
            values = pc.binary_length(texts[-1]).cast(_INT64)
        else:
            values = _in_64_bits(column)
        cells[:, place, 0] = column.is_valid().to_numpy(zero_copy_only=False)
        cells[:, place, 1:] = values.to_numpy().astype("<i8", copy=False).view(np.uint8).reshape(-1, 8)
    if not texts and len(names) == 1:
        padded = np.zeros((len(table), DIGEST.itemsize), np.uint8)
        padded[:, :_CELL_BYTES] = cells[:, 0]
        return padded.view(DIGEST)[:, 0]
    width = len(names) * _CELL_BYTES
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(table), [None, pa.py_buffer(cells)])
    found = pc.binary_join_element_wise(fixed.cast(pa.binary()), *texts, b"").dictionary_encode()
    hashes = b"".join([blake2b(row, digest_size=16).digest() for row in found.dictionary.to_pylist()])
    digests: NDArray[np.void] = np.frombuffer(hashes, DIGEST)[found.indices.to_numpy()]
    return digests


def numbered(digests: NDArray[np.void]) -> NDArray[np.int32]:
    """Returns a number for each digest. Equal ones have the same, from 0 on."""
    data = pa.py_buffer(np.ascontiguousarray(digests))
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST.itemsize), len(digests), [None, data])
    numbers: NDArray[np.int32] = array.dictionary_encode().indices.to_numpy()
    return numbers


def _in_64_bits(column: pa.Array) -> pa.Array:
    """Returns values of 64 bits as whole numbers. A null is 0."""
    if pa.types.is_floating(column.type):
        return pc.fill_null(column, 0.0).view(_INT64)
    return pc.fill_null(column.cast(_INT64), 0)
