"""The gap between the last row of an earlier process of an ingester and the first answer to this one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import time

from pipeline_runtime.connectors.report import Report

log = logging.getLogger(__name__)

LOOK_S = 0.2


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


def gap_of(last: LastRow | None, answered_ms: int, missed_in: Callable[[float], int | None]) -> Told | None:
    """Returns what to tell, or None if there was no pause. Pure. `last`: None if nobody knows. `answered_ms`:
    when the system answered first. `missed_in`: as Ingester.missed_in."""
    if last is None:
        return Told("The element has begun, and Kafka does not say when its last row came")
    if last.at_ms is None:
        if not last.is_deleted:
            return None
        return Told(
            "The element has begun again. Its last row came so long ago that Kafka has deleted it, and the "
            "system keeps nothing meanwhile"
        )
    pause_s = (answered_ms - last.at_ms) / 1000
    missed = missed_in(pause_s) if pause_s > 0 else 0
    if missed == 0:
        return None
    return Told(
        f"The element has begun again. Its last row came {pause_s:.1f} s before the first answer, and the "
        "system keeps nothing meanwhile",
        missed,
    )


class Pause:
    """Tells it once: when the system has answered, and before a row of this process is durable. So no process
    takes a row for one of an earlier process, and one that is killed before leaves all of it to the next."""

    def __init__(
        self, look: Callable[[], LastRow], report: Report, missed_in: Callable[[float], int | None]
    ) -> None:
        """`look` returns when the last row of all came. Whatever it raises, nobody knows then."""
        self._look, self._report, self._missed_in = look, report, missed_in
        self._last: LastRow | None = None
        self._looked = threading.Event()
        self._lock = threading.Lock()
        self._told = False

    def start(self) -> None:
        """Looks, beside the connecting, and tells as soon as the system is connected."""
        threading.Thread(target=self._run, name="pause", daemon=True).start()

    def tell(self) -> None:
        """Returns when it is told, which waits for the look. The system has answered by now."""
        status = self._report.status
        answered_ms = status.since_ms if status.state == "connected" else int(time() * 1000)
        self._looked.wait()
        with self._lock:
            told, self._told = self._told, True
            if told:
                return
            found = gap_of(self._last, answered_ms, self._known_missed_in)
            if found is not None:
                self._report.gap(found.why, found.rows)

    def _known_missed_in(self, pause_s: float) -> int | None:
        try:
            return self._missed_in(pause_s)
        except Exception:  # the gap is told all the same
            log.exception("a connector cannot tell how many rows were lost")
            return None

    def _run(self) -> None:
        try:
            self._last = self._look()
        except Exception as error:
            log.warning("Kafka does not say when the last row came: %s", error)
        finally:
            self._looked.set()
        pause = threading.Event()
        while self._report.status.state != "connected" and not self._told:
            pause.wait(LOOK_S)
        self.tell()
