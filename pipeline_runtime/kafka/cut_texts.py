"""Cuts many texts out of bytes that lie in one piece, as an Arrow array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def cut_texts(
    data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64], type_: pa.DataType
) -> pa.Array:
    """Returns the bytes from each place in `begins` to before the one in `ends`, as an array of `type_`
    (binary or string). The texts must not overlap, must be in their order, and lie before 2 GiB.

    Arrow sees the data as texts and what lies between them, one after the other, and takes each second one.
    That is faster than to make Arrow's views of them, or to gather their bytes.
    """
    count = len(begins)
    places = np.empty(2 * count + 1, np.int32)
    places[0], places[1::2], places[2::2] = 0, begins, ends
    parts = [None, pa.py_buffer(places), pa.py_buffer(data)]
    both = pa.Array.from_buffers(type_, 2 * count, parts)
    return both.take(pa.array(np.arange(1, 2 * count, 2)))
