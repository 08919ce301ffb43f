"""Totals of rows that never fall, although a replica that starts has not read them yet. Pure."""

from __future__ import annotations

from typing import Any

from pipeline_runtime.model.desired import ElementRows, ReplicaStatus

_TOTALS = ("rows_in_total", "rows_out_total", "dead_letters_total", "left_out_total")
_UNKNOWN = ElementRows()


def with_totals(before: ReplicaStatus | None, now: ReplicaStatus) -> ReplicaStatus:
    """Returns the status with the totals of the one before it where they are greater: a replica that starts
    knows them only when it has read its journal."""
    if before is None:
        return now
    found: dict[str, Any] = {name: max(getattr(before, name), getattr(now, name)) for name in _TOTALS}
    found["elements"] = {
        id: _most(before.elements.get(id, _UNKNOWN), now.elements.get(id, _UNKNOWN))
        for id in before.elements.keys() | now.elements.keys()
    }
    found["last_row_at_ms"] = max(before.last_row_at_ms or 0, now.last_row_at_ms or 0) or None
    return now.model_copy(update=found)


def _most(before: ElementRows, now: ElementRows) -> ElementRows:
    def most(one: int | None, other: int | None) -> int | None:
        return max((count for count in (one, other) if count is not None), default=None)

    return ElementRows(
        rows_in_total=most(before.rows_in_total, now.rows_in_total),
        rows_out_total=most(before.rows_out_total, now.rows_out_total),
        dead_letters_total=max(before.dead_letters_total, now.dead_letters_total),
        last_row_at_ms=most(before.last_row_at_ms, now.last_row_at_ms),
    )
