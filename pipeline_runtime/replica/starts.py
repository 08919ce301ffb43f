"""Queries start one after the other, as many at a time as the node has cores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

START_TIMEOUT_S = 30.0


class StartTurns:
    """Spark gives a query's Python process 10 s to start, which takes it 2 s of CPU: were ten queries
    to start at once on a small machine, none would. So at most `at_once` do."""

    def __init__(self, at_once: int) -> None:
        self._turns = threading.BoundedSemaphore(at_once)

    def take(self, stopping: threading.Event) -> bool:
        """Wait for a turn; False when `stopping` is set before."""
        while not self._turns.acquire(timeout=0.2):
            if stopping.is_set():
                return False
        return True

    def give_back(self) -> None:
        self._turns.release()

    def give_back_when(self, connected: threading.Event, over: Callable[[], bool]) -> None:
        """Without waiting here: when the process is `connected`, or it is `over`, or takes too long."""

        def watch() -> None:
            deadline = monotonic() + START_TIMEOUT_S
            while not connected.wait(0.1) and monotonic() < deadline and not over():
                pass
            self.give_back()

        try:
            threading.Thread(target=watch, name="query start", daemon=True).start()
        except BaseException:  # there are no more threads: the next one that starts needs the turn
            self.give_back()
            raise
