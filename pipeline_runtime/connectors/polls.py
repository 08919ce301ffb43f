"""Computes which polls of a system are due, and how many were missed. Pure: the caller gives the times."""

from __future__ import annotations

TOLD_EVERY_S = 10.0
"""Missed polls are told as one gap, so that a slow system does not make an event of each poll."""


class Polls:
    """Lives as long as its connector, so it also counts what was due while the connection was away.

    `begun`, then `worked`, or `failed` if nothing came of it. Those that were missed since the last one that
    worked are not told yet: the next process tells them, if this one works no more (`missed_in`).
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s: float | None = None
        self._missed = 0  # since the last one that worked
        self._untold = 0  # before it
        self._told_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """Returns how long it is until the next poll."""
        return 0.0 if self._due_s is None else max(0.0, self._due_s - now_s)

    def begun(self, now_s: float) -> None:
        """Tells that a poll begins now. Those that were due before it are missed."""
        late = 0 if self._due_s is None else int((now_s - self._due_s) // self._every_s)
        self._missed += max(0, late)
        first_s = now_s if self._due_s is None else self._due_s
        self._due_s = first_s + (max(0, late) + 1) * self._every_s

    def failed(self) -> None:
        """Tells that the poll that began last gave no row."""
        self._missed += 1

    def worked(self, now_s: float) -> int:
        """Tells that the poll that began last has worked. Returns how many missed ones are to be told now,
        and takes them as told."""
        self._untold += self._missed
        self._missed = 0
        if not self._untold or (self._told_s is not None and now_s - self._told_s < TOLD_EVERY_S):
            return 0
        self._told_s = now_s
        return self.left()

    def left(self) -> int:
        """Returns how many missed polls are to be told at the end, and takes them as told."""
        untold, self._untold = self._untold, 0
        return untold


def missed_in(pause_s: float, every_s: float) -> int:
    """Returns how many polls were missed between two that worked so long after each other."""
    return max(0, int(pause_s // every_s) - 1)
