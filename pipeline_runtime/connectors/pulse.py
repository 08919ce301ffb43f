"""Notices a connector that hangs: a call into a library does not return, while the rest of the process works.

    asking --no sign for 5 s--> words at the element --none for its patience and 4 s--> the process ends

Its node then starts the process again. Signs are: an ingester has looked at `stop`, a call of a deliverer has
returned, or a deliverer has said that it goes on. A thread of a library has signs of its own: `beats`.
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
from typing import Protocol

from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import PATIENCE_S, TELL_S

log = logging.getLogger(__name__)

LOOK_S = 0.5
STEP_S_MAX = 2 * LOOK_S
"""A process that stood still as a whole has not waited for its system meanwhile."""
HANGS = "Its connector hangs: the library for its system does not return"
END_AFTER_S = 4.0
"""So long after its patience the process ends."""


@dataclass(frozen=True)
class Silence:
    """For how long there was no sign. Pure."""

    signs: int = 0
    s: float = 0.0

    def next(self, signs: int, passed_s: float, *, asking: bool) -> Silence:
        if not asking or signs != self.signs:
            return Silence(signs)
        return Silence(signs, self.s + min(passed_s, STEP_S_MAX))


class Watched(Protocol):
    """An Ingester, OnceIngester or Deliverer."""

    patience_s: float

    def beats(self) -> int | None: ...


class Pulse:
    """Watches the thread that enters it, and the library's own. `hung` is called once, from a thread of its
    own."""

    def __init__(self, report: Report, connector: Watched, hung: Callable[[], None]) -> None:
        self._report, self._connector, self._hung = report, connector, hung
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

    def _watch(self) -> None:
        patience_s = self._connector.patience_s
        call, library, at_s, told = Silence(), Silence(), monotonic(), False
        while not self._closed.wait(LOOK_S):
            now_s = monotonic()
            passed_s, at_s = now_s - at_s, now_s
            call = call.next(self._signs, passed_s, asking=self._asking)
            beats = self._connector.beats()
            library = library.next(beats or 0, passed_s, asking=beats is not None)
            waited_s = max(call.s, library.s)
            if max(call.s - patience_s, library.s - PATIENCE_S) >= END_AFTER_S:
                self._report.hanging(HANGS, waited_s)
                self._hung()
                return
            if waited_s < TELL_S:
                self._report.hanging("")
            elif not told:
                most_s = END_AFTER_S + (patience_s if call.s >= library.s else PATIENCE_S)
                self._log_stack(waited_s)
                self._report.hanging(
                    f"Its connector has waited for an answer of its system for {waited_s:.0f} s. If it waits "
                    f"for {most_s:.0f} s, its process is ended and started again",
                    waited_s,
                )
            told = waited_s >= TELL_S

    def _log_stack(self, waited_s: float) -> None:
        frame = sys._current_frames().get(self._watched)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        log.warning("the connector has not gone on for %.0f s:\n%s", waited_s, stack)


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
