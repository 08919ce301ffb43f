"""Queries take turns to start: at most as many start at a time as the node has cores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

START_TIMEOUT_S = 30.0


class StartTurns:
    """At most `at_once` queries start at a time.

    Spark gives a query's Python process 10 s to start, and that takes 2 s of CPU. If ten queries started at
    once on a small machine, none of them would be in time.
    """

    def __init__(self, at_once: int) -> None:
        self._turns = threading.BoundedSemaphore(at_once)

    def take(self, stopping: threading.Event) -> bool:
        """Wait for a turn. Returns False if `stopping` is set before."""
        while not self._turns.acquire(timeout=0.2):
            if stopping.is_set():
                return False
        return True

    def give_back(self) -> None:
        self._turns.release()

    def give_back_when(self, connected: threading.Event, over: Callable[[], bool]) -> None:
        """Give the turn back as soon as the process is `connected`, or is `over`, or takes too long. Returns
        at once."""

        def watch() -> None:
            deadline = monotonic() + START_TIMEOUT_S
            while not connected.wait(0.1) and monotonic() < deadline and not over():
                pass
            self.give_back()

        try:
            threading.Thread(target=watch, name="query start", daemon=True).start()
        except BaseException:  # there are no more threads; the next query needs the turn
            self.give_back()
            raise
