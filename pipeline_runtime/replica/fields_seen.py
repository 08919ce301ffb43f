"""Notices columns that never get a value: a field's name may be misspelt."""

from __future__ import annotations

from collections.abc import Collection

ROWS_LOOKED_AT = 1000


class FieldsSeen:
    """Which columns of one input have had a value so far."""

    def __init__(self, names: Collection[str]) -> None:
        self._empty = dict.fromkeys(names)  # keeps their order
        self._rows = 0

    def add(self, rows: int, seen: Collection[str]) -> tuple[str, ...]:
        """Takes note of some rows and the columns that have a value in them. Returns the columns that have
        had none, once, when so many rows have come."""
        if self._rows >= ROWS_LOOKED_AT:
            return ()
        self._rows += rows
        for name in seen:
            self._empty.pop(name, None)
        return tuple(self._empty) if self._rows >= ROWS_LOOKED_AT else ()
