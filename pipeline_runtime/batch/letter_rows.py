"""What dead letters say of their rows: the key and the time, read off the rows that the group was given."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.rows import in_ms
from pipeline_runtime.operators.tables import with_column


def with_rows(letters: pa.Table, given: Sequence[pa.Table]) -> pa.Table:
    """Returns letters (`output.LETTERS`) with the key and the time of the row that lies where each letter
    says. `given`: the rows of each stream that the group reads, with `_key`, `_time`, `_partition` and
    `_offset`. With several streams nobody knows in which of them a letter's row lies."""
    if not letters.num_rows or len(given) != 1:
        return letters
    [rows] = given
    rows = rows.filter(pc.is_in(rows["_offset"], value_set=letters["offset"].combine_chunks()))
    places = zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True)
    times_ms = in_ms(rows["_time"]).cast(pa.int64()).to_pylist()
    about = dict(zip(places, zip(rows["_key"].to_pylist(), times_ms, strict=True), strict=True))
    lie_at = zip(letters["partition"].to_pylist(), letters["offset"].to_pylist(), strict=True)
    found = [about.get(place, (None, None)) for place in lie_at]
    keys, times = (pa.array([each[part] for each in found], of) for part, of in enumerate(_TYPES))
    return with_column(with_column(letters, "key", keys), "time_ms", times)


_TYPES = (pa.string(), pa.int64())
