"""Computes the gap from the last row of an ingester's earlier process to the first answer to the present
process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import time

from pipeline_runtime.connectors.kept import Beginning, KeptBeginnings
from pipeline_runtime.connectors.report import Report

log = logging.getLogger(__name__)

LOOK_S = 0.2
AGAIN_S = 1.0
"""How often Kafka is asked while it does not answer."""
AHEAD_MS = 1_000
"""A row whose time is further ahead of this node's clock comes from another clock."""
_KEEPS_NOTHING = "and the system keeps no rows in that time"


@dataclass(frozen=True)
class LastRow:
    """When the last row came. Without a time there was none, unless it `is_deleted`."""

    at_ms: int | None = None
    is_deleted: bool = False


@dataclass(frozen=True)
class Told:
    """A gap to tell."""

    why: str
    rows: int | None = None


def gap_of(
    last: LastRow, answered_ms: int, looked_ms: int, missed_in: Callable[[float], int | None]
) -> Told | None:
    """Returns what to tell, or None if there was no pause. Pure. `answered_ms`: when the system answered
    first. `looked_ms`: when the last row was looked for. `missed_in`: as Ingester.missed_in."""
    if last.at_ms is None:
        if not last.is_deleted:
            return None
        return Told(
            "The element has begun again. Its last row came so long ago that Kafka has deleted it, "
            + _KEEPS_NOTHING
        )
    if last.at_ms > looked_ms + AHEAD_MS:
        return Told(
            "The element has begun again. Its last row has a time that this node's clock has not reached, so "
            f"the length of the gap is not known, {_KEEPS_NOTHING}"
        )
    pause_s = (answered_ms - last.at_ms) / 1000
    missed = missed_in(pause_s) if pause_s > 0 else 0
    if missed == 0:
        return None
    return Told(
        f"The element has begun again. Its last row came {pause_s:.1f} s before the first answer, "
        + _KEEPS_NOTHING,
        missed,
    )


def later_of(newest: LastRow, left_ms: int | None) -> LastRow:
    """Returns the later one of the newest row in Kafka and the newest one on the disk."""
    return newest if left_ms is None else LastRow(max(left_ms, newest.at_ms or 0))


class Pause:
    """Tells it once: when the system has answered, and Kafka says when the last row came.

    Before that, rows of this process go to the node's disk alone, beside a note of when the system answered.
    So no process takes such a row for one of an earlier process, and one that is killed leaves its gap to the
    next process.
    """

    def __init__(
        self,
        look: Callable[[], LastRow],
        report: Report,
        kept: KeptBeginnings,
        left_ms: int | None,
        missed_in: Callable[[float], int | None] | None,
    ) -> None:
        """`look` returns the newest row in Kafka, or raises. `left_ms`: the time of the newest row that an
        earlier process has left on the disk. `missed_in` is None if the system waits: then only what earlier
        processes have left is told."""
        self._look, self._report, self._kept = look, report, kept
        self._left_ms = left_ms
        self._missed_in = missed_in
        self._untold = kept.read()  # of earlier processes, and then of this one
        self._answered_ms: int | None = None
        self._noted = False
        self._is_told = missed_in is None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Tells in a thread of its own, as soon as it can."""
        threading.Thread(target=self._run, name="pause", daemon=True).start()

    def opens(self, own: bool) -> bool:
        """Returns whether rows may go to Kafka. `own`: rows of this process are among them, so the system has
        answered. They may go to the disk if it returns. Raises OSError if the disk does not take the
        note."""
        with self._lock:
            if not own:
                return not self._untold
            if self._is_told:
                return not self._untold
            if not self._noted:
                self._answer()
                self._kept.write(self._untold)
                self._noted = True
            return False

    # -- the caller holds the lock -----------------------------------------------------------------------

    def _answer(self) -> None:
        """Notes when the system has answered first."""
        if self._answered_ms is None:
            status = self._report.status
            self._answered_ms = status.since_ms if status.state == "connected" else _now_ms()
            self._untold = (*self._untold, Beginning(self._answered_ms, self._left_ms))

    def _tell(self, newest: LastRow, untold: tuple[Beginning, ...]) -> None:
        for each in untold:
            last = later_of(newest, each.left_ms)
            found = gap_of(last, each.answered_ms, _now_ms(), self._known_missed_in)
            if found is not None:
                self._report.gap(found.why, found.rows)
        self._untold = self._untold[len(untold) :]
        self._is_told = self._is_told or (self._answered_ms is not None and not self._untold)
        try:
            # Without a row of its own, the next process tells from the same last row on.
            self._kept.write(self._untold if self._noted else ())
        except OSError as error:
            log.warning("a gap that was told may be told again: %s", error)

    # -- the thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                if not self._is_told and self._report.status.state == "connected":
                    self._answer()
                untold = self._untold
                if self._is_told and not untold:
                    return
            if not untold:
                pause.wait(LOOK_S)
                continue
            try:
                newest = self._look()
            except Exception as error:
                log.warning("Kafka does not say when the last row came: %s", error)
                pause.wait(AGAIN_S)
                continue
            with self._lock:
                self._tell(newest, untold)

    def _known_missed_in(self, pause_s: float) -> int | None:
        if self._missed_in is None:
            return None
        try:
            return self._missed_in(pause_s)
        except Exception:  # the gap is told all the same
            log.exception("a connector cannot tell how many rows were lost")
            return None


def _now_ms() -> int:
    return int(time() * 1000)
