"""Packs a node's report for its way through Redis: compressed JSON.

A node reports every second, some 1.5 KB of JSON for each group. Most of it is names, so compression leaves a
quarter, in some 10 us. A node far away pays for its line by the byte.
"""

from __future__ import annotations

import zlib

BYTES_MAX = 16 * 1024**2


class ReportDamaged(ValueError):
    """The bytes are not compressed as a report is, or the report in them is too large."""


def packed(report: str) -> bytes:
    """Returns the report, given as JSON, in its packed form."""
    return zlib.compress(report.encode(), level=1)


def json_of(raw: bytes) -> bytes:
    """The JSON that was packed. Raises ReportDamaged."""
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(raw, BYTES_MAX)
    except zlib.error as error:
        raise ReportDamaged(str(error)) from error
    if not unpacking.eof:
        raise ReportDamaged(f"it ends before its end, or has over {BYTES_MAX:,} bytes")
    return text
