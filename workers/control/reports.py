"""What one report means for the database: pure comparisons of the old rows with the new report."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline_runtime.model.desired import ElementRows, ReplicaStatus

RATE_WINDOW_MS = 5_000


class Runs:
    """Which run of each node is listened to: the newest that was heard of, and only forwards.

    A run that was superseded is never listened to again, so two processes under one name, or a
    report that was under way while its node was restarted, cannot make the rows jump to and fro.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}
        self._superseded: dict[str, deque[str]] = {}

    def accepts(self, node: str, run_id: str, number: int, stored: tuple[str, int]) -> bool:
        """`stored`: run and number in the database, for the first report after a start of control."""
        newest_run, newest_number = self._newest.get(node, stored)
        if run_id == newest_run:
            if number <= newest_number:
                return False
        else:
            old = self._superseded.setdefault(node, deque(maxlen=100))
            if run_id in old:
                return False
            if newest_run:
                old.append(newest_run)
        self._newest[node] = (run_id, number)
        return True

    def forget(self, node: str) -> None:
        """What was accepted last was not written: the database says again what is the newest."""
        self._newest.pop(node, None)


_WHOLE = ""
_Point = tuple[int, dict[str, ElementRows], dict[str, int]]
"""Heard at, ms; rows in all by element; bytes in all by output."""


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
    """Rows per second of each replica and its elements, and bytes per second of its streams, over the last
    seconds of its totals."""

    def __init__(self) -> None:
        self._points: dict[tuple[str, str, int], deque[_Point]] = {}

    def update(self, node: str, status: ReplicaStatus, at_ms: int) -> dict[str, Any]:
        """{"rows_in_per_s", "rows_out_per_s", "elements": {id: the same two, None where unknown},
        "bytes_per_s": {"element.port": of that output}}"""
        key = (node, status.group, status.generation)
        points = self._points.setdefault(key, deque())
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
        return {**rates.pop(_WHOLE), "elements": rates, "bytes_per_s": sent}

    def forget(self, node: str, keep: set[str]) -> None:
        for key in [key for key in self._points if key[0] == node and key[1] not in keep]:
            del self._points[key]


@dataclass(frozen=True)
class Notice:
    """Something that a person should know."""

    kind: str
    severity: str
    message: str


def notices(
    before: ReplicaStatus | None, now: ReplicaStatus, name: Callable[[], str], node: str
) -> list[Notice]:
    """What is new in `now`; told once, not at each heartbeat. `name()`: what people call the group, which is
    looked up only when there is something to tell."""
    found = []
    old_error = before.error if before is not None else None
    if now.error is not None and (old_error is None or old_error.at_ms != now.error.at_ms):
        text = f"{name()} on {node}: {now.error.message} {now.error.safe} {now.error.next}"
        if now.phase == "fenced":  # another owner took over: nothing is broken
            found.append(Notice("replica.fenced", "warning", text))
        else:
            found.append(Notice("element.failed", "error", text))
    refused_before = before is not None and before.order_refused == now.order_refused
    if now.order_refused is not None and not refused_before:
        found.append(
            Notice(
                "order.refused",
                "warning",
                f"{node} was not allowed to take over {name()}: {now.order_refused} Nothing was "
                "written twice.",
            )
        )
    if now.dead_letters_total > 0 and (before is None or before.dead_letters_total == 0):
        found.append(
            Notice(
                "element.dead_letters",
                "warning",
                f"{name()} sends records to its dead letters. The rest is processed; look at the "
                "reasons there.",
            )
        )
    return found
