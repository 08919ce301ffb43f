"""A node's report on its way through Redis: JSON, compressed.

A node reports each second, some 1.5 KB of JSON for each group. Most of it is names, so a quarter is left, for
some 10 us; and a node far away pays for its line by the byte.
"""

from __future__ import annotations

import zlib

BYTES_MAX = 16 * 1024**2


class ReportDamaged(ValueError):
    """It is not compressed as a report is, or too large when it is not any more."""


def packed(report: str) -> bytes:
    """`report`: as JSON."""
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
