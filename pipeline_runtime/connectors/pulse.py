"""Notices a connector that hangs: a library does not return, while the process still reports.

    asking --no sign for 8 s--> words at the element --none for longer than its patience--> the process ends

Its node then starts the process again. Signs are: an ingester has looked at `stop`, a call of a deliverer has
returned, or a deliverer has said that it goes on.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import PATIENCE_S

log = logging.getLogger(__name__)

LOOK_S = 0.5
STEP_S_MAX = 2 * LOOK_S
"""A process that stood still as a whole has not waited for its system meanwhile."""
END_AFTER_S = 4.0
"""So long after its patience the process ends. Until then, the connector itself may notice."""


@dataclass(frozen=True)
class Silence:
    """For how long there was no sign. Pure."""

    signs: int = 0
    s: float = 0.0

    def next(self, signs: int, passed_s: float, *, asking: bool) -> Silence:
        if not asking or signs != self.signs:
            return Silence(signs)
        return Silence(signs, self.s + min(passed_s, STEP_S_MAX))


class Pulse:
    """Watches one thread, which enters it. `hung` is called once, from a thread of its own."""

    def __init__(self, report: Report, patience_s: float, hung: Callable[[], None]) -> None:
        self._report, self._patience_s, self._hung = report, patience_s, hung
        self._signs, self._asking = 0, False
        self._closed = threading.Event()
        self._watched = 0
        self._thread = threading.Thread(target=self._watch, name="pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def goes_on(self) -> None:
        self._signs += 1

    @contextmanager
    def asking(self, asking: bool = True) -> Iterator[None]:
        """What is called within may hang; with `asking` False it waits on purpose."""
        before, self._asking = self._asking, asking
        self.goes_on()
        try:
            yield
        finally:
            self._asking = before
            self.goes_on()

    def stop_of(self, stop: threading.Event) -> threading.Event:
        """Returns an event like `stop`, of which each look is a sign."""
        return _LookedAt(stop, self)

    def end(self, why: str) -> None:
        """Ends the process because of a hang that the connector itself has noticed."""
        self._report.failing(why)
        self._hung()

    def _watch(self) -> None:
        silence, at_s = Silence(), monotonic()
        connected_before: bool | None = None  # None while nothing is told
        while not self._closed.wait(LOOK_S):
            now_s = monotonic()
            silence = silence.next(self._signs, now_s - at_s, asking=self._asking)
            at_s = now_s
            if silence.s < PATIENCE_S:
                if connected_before:
                    self._report.connected()
                connected_before = None
                continue
            if connected_before is None:
                connected_before = self._report.status.state == "connected"
                self._tell()
            if silence.s >= self._patience_s + END_AFTER_S:
                self._report.failing(
                    "Its connector hangs: the library for its system does not return. Its process is ended"
                )
                self._hung()
                return

    def _tell(self) -> None:
        frame = sys._current_frames().get(self._watched)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        log.warning("the connector has not gone on for %.0f s:\n%s", PATIENCE_S, stack)
        self._report.failing(
            f"Its connector has waited for its system for {PATIENCE_S:.0f} s. If it goes on to wait, its "
            "process is ended and started again"
        )


class _LookedAt(threading.Event):
    def __init__(self, stop: threading.Event, pulse: Pulse) -> None:
        super().__init__()
        self._stop, self._pulse = stop, pulse

    def is_set(self) -> bool:
        self._pulse.goes_on()
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        with self._pulse.asking(False):
            return self._stop.wait(timeout)
