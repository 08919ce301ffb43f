"""Reports a connector's state and counts to its node, as lines of JSON on standard output."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, time
from typing import Any, Literal

from pipeline_runtime.connectors.kept import Gaps, KeptGaps, new_counter
from pipeline_runtime.connectors.masked import Masked
from pipeline_runtime.model.connectors import ConnectorStatus

_WHY_MAX = 1000


class Report:
    """All methods may be called from any thread."""

    def __init__(
        self,
        element: str,
        tell: Callable[[ConnectorStatus, str], None],
        masked: Masked | None = None,
        kept: KeptGaps | None = None,
    ) -> None:
        """`tell(status, note)` is called at once when the state changes, and with a note for each gap.
        `kept`: where the counts of gaps outlive the process."""
        self._tell = tell
        self._masked = masked or Masked()
        self._lock = threading.Lock()
        self._kept = kept
        gaps = new_counter() if kept is None else kept.read()
        self._status = ConnectorStatus(
            element=element,
            since_ms=_now_ms(),
            gaps_total=gaps.times,
            gap_rows_total=gaps.rows,
            gaps_counter=gaps.counter,
        )
        self._connected_s: float | None = None
        self._hangs: tuple[str, int] | None = None  # why, and since when in ms

    @property
    def status(self) -> ConnectorStatus:
        hangs = self._hangs
        if hangs is None:
            return self._status
        why, since_ms = hangs
        return self._status.model_copy(update={"state": "failing", "why": why, "since_ms": since_ms})

    def connected(self) -> None:
        if self._status.state != "connected":
            self._turn("connected", "")

    def failing(self, why: str) -> None:
        why = self._masked(why)[:_WHY_MAX]
        if (self._status.state, self._status.why) != ("failing", why):
            self._turn("failing", why)

    def hanging(self, why: str, waited_s: float = 0.0) -> None:
        """Tells that the connector has not gone on for `waited_s`, over what it says itself. An empty text:
        it goes on."""
        before = self._hangs
        if why == ("" if before is None else before[0]):
            return
        since_ms = _now_ms() - int(waited_s * 1000) if before is None else before[1]
        self._hangs = (self._masked(why)[:_WHY_MAX], since_ms) if why else None
        self._tell(self.status, "")

    def connected_for_s(self) -> float:
        """Returns how long it has been connected, or 0."""
        return 0.0 if self._connected_s is None else monotonic() - self._connected_s

    def gap(self, why: str, rows: int | None = None) -> None:
        with self._lock:
            self._status = self._status.model_copy(
                update={
                    "gaps_total": self._status.gaps_total + 1,
                    "gap_rows_total": self._status.gap_rows_total + (rows or 0),
                }
            )
            if self._kept is not None:
                now = self._status
                self._kept.write(Gaps(now.gaps_total, now.gap_rows_total, now.gaps_counter))
        self._tell(self.status, self._masked(why if rows is None else f"{why} ({rows} rows)"))

    def count(self, *, rows: int = 0, refused: int = 0, spool_bytes: int | None = None) -> None:
        with self._lock:
            update: dict[str, Any] = {
                "rows_total": self._status.rows_total + rows,
                "refused_total": self._status.refused_total + refused,
            }
            if spool_bytes is not None:
                update["spool_bytes"] = spool_bytes
            self._status = self._status.model_copy(update=update)

    def _turn(self, state: Literal["connected", "failing"], why: str) -> None:
        with self._lock:
            was = self._status
            # "failing" with other words goes on for as long as it has.
            since_ms = was.since_ms if was.state == state else _now_ms()
            self._status = was.model_copy(update={"state": state, "why": why, "since_ms": since_ms})
            if state != was.state:
                self._connected_s = monotonic() if state == "connected" else None
        self._tell(self.status, "")


class Telling:
    """What an ingester may tell while it runs, for an intake that hands it on as it is."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def connected(self) -> None:
        self._report.connected()

    def failing(self, why: str) -> None:
        self._report.failing(why)

    def gap(self, why: str, rows: int | None = None) -> None:
        self._report.gap(why, rows)


def _now_ms() -> int:
    return int(time() * 1000)
