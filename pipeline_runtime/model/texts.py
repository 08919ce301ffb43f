"""The texts of values, as they stand in a record's JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Values = Any
"""An Arrow array, chunked array or scalar."""


def texts(values: Values) -> Values:
    """Returns the text of each value, as a record's JSON has it but without quotes. Null stays null."""
    if values.type == pa.string():
        return values
    if pa.types.is_floating(values.type):
        return number_texts(values)
    if pa.types.is_timestamp(values.type):
        return _time_texts(values)
    return values.cast(pa.string())


def number_texts(numbers: Values) -> Values:
    """Returns the shortest text that reads back as the same number."""
    made = numbers.cast(pa.string())
    # 1.0 where Arrow writes 1, so that a reader sees that it is no integer.
    is_whole = pc.and_(pc.equal(pc.trunc(numbers), numbers), pc.is_finite(numbers))
    bare = pc.and_not(is_whole, pc.match_substring(made, "e"))
    if isinstance(bare, pa.ChunkedArray | pa.Array) and not pc.any(bare).as_py():
        return made
    return pc.if_else(bare, pc.binary_join_element_wise(made, ".0", ""), made)


def _time_texts(times: Values) -> Values:
    """Returns each time in the form 2024-05-01T12:00:00.000000Z."""
    # Without the zone, since with it Arrow takes ten times as long.
    made = times.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(made, " ", "T"), "Z", "")
