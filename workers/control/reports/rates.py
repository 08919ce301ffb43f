"""Rows and bytes per second, from the totals that a node reports."""

from __future__ import annotations

from collections import deque
from typing import Any

from pipeline_runtime.model.desired import ElementRows, ReplicaStatus, Role

RATE_WINDOW_MS = 5_000
_WHOLE = ""
_HAS_READ = ("following", "armed")
"""Phases of a standby that has read its journal, and knows how many rows there were before."""
_Point = tuple[int, dict[str, ElementRows], dict[str, int]]
"""When it was heard, ms; total rows by element; total bytes by output."""


def _fell(before: ElementRows, now: ElementRows) -> bool:
    return (now.rows_in_total or 0) < (before.rows_in_total or 0) or (now.rows_out_total or 0) < (
        before.rows_out_total or 0
    )


def _rate(before: ElementRows | None, now: ElementRows, name: str, elapsed_ms: int) -> float | None:
    total = getattr(now, name)
    if total is None:
        return None
    if elapsed_ms <= 0:
        return 0.0
    base = getattr(before, name) if before is not None else None
    return round(1000 * (total - (base or 0)) / elapsed_ms, 2)


class Rates:
    """Rows per second of each replica and its elements, and bytes per second of its streams.

    They are means over the last RATE_WINDOW_MS of the totals that its node reports.
    """

    def __init__(self) -> None:
        self._points: dict[tuple[str, str, int], deque[_Point]] = {}

    def update(self, node: str, status: ReplicaStatus, at_ms: int) -> dict[str, Any]:
        """Returns the rates after a report that was heard at `at_ms`.

        {"rows_in_per_s", "rows_out_per_s", "elements": {id: the same two, None if unknown},
        "bytes_per_s": {"element.port": bytes per second of that output}}
        """
        key = (node, status.group, status.generation)
        points = self._points.setdefault(key, deque())
        if before_its_totals := status.role is not Role.OWNER and status.phase not in _HAS_READ:
            points.clear()
        whole = ElementRows(rows_in_total=status.rows_in_total, rows_out_total=status.rows_out_total)
        totals = {_WHOLE: whole, **status.elements}
        if points and (at_ms < points[-1][0] or _fell(points[-1][1][_WHOLE], whole)):
            points.clear()  # the replica was started again and counts from zero
        points.append((at_ms, totals, status.stream_bytes_total))
        while len(points) > 2 and at_ms - points[1][0] >= RATE_WINDOW_MS:
            points.popleft()
        elapsed_ms = at_ms - points[0][0]
        rates = {
            id: {
                "rows_in_per_s": _rate(points[0][1].get(id), now, "rows_in_total", elapsed_ms),
                "rows_out_per_s": _rate(points[0][1].get(id), now, "rows_out_total", elapsed_ms),
            }
            for id, now in totals.items()
        }
        before = points[0][2]
        sent = {
            source: round(1000 * (total - before.get(source, 0)) / elapsed_ms, 2) if elapsed_ms > 0 else 0.0
            for source, total in status.stream_bytes_total.items()
        }
        if before_its_totals:
            points.clear()  # what it finds in its journal was not read in the last seconds
        return {**rates.pop(_WHOLE), "elements": rates, "bytes_per_s": sent}

    def forget(self, node: str, keep: set[str]) -> None:
        """Forgets the node's replicas of groups that are not in `keep`."""
        for key in [key for key in self._points if key[0] == node and key[1] not in keep]:
            del self._points[key]
