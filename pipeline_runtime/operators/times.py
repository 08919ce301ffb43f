"""Times in ISO 8601, as `cast(... as timestamp)` in expressions reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

ISO_PATTERN = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$"
_TIMESTAMP = pa.timestamp("us", "UTC")


def read_iso(text: pa.Array) -> pa.Array:
    """Texts of ISO_PATTERN to UTC. Impossible dates become null."""
    zoned = pc.match_substring_regex(text, r"(Z|[+-]\d\d:?\d\d)$")
    # A bare date ends in -dd as well: a zone needs a time of day before it.
    zoned = pc.and_(zoned, pc.match_substring_regex(text, r"[T ]\d\d:"))
    with_zone = pc.if_else(zoned, text, pc.binary_join_element_wise(_with_clock(text), "Z", ""))
    try:
        fine = pc.cast(with_zone, pa.timestamp("ns", "UTC"))
        return pc.cast(fine, _TIMESTAMP, safe=False)
    except pa.ArrowInvalid:
        # Some value has the form of a date and is none (or is outside the range of nanoseconds).
        return pa.array([_iso_or_none(value) for value in with_zone.to_pylist()], _TIMESTAMP)


def _with_clock(text: pa.Array) -> pa.Array:
    bare = pc.equal(pc.utf8_length(text), 10)
    return pc.if_else(bare, pc.binary_join_element_wise(text, "T00:00:00", ""), text)


def _iso_or_none(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
