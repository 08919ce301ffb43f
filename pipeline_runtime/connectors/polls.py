"""Which polls of a system are due, and how many were missed. Pure: the times are given."""

from __future__ import annotations

TOLD_EVERY_S = 10.0
"""Missed polls are told as one gap, so that a slow system does not make an event of each poll."""


class Polls:
    """Lives as long as its connector, so it also counts what was due while the connection was away.

    `begun`, then `failed` if nothing came of it; `untold` when one has worked.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s: float | None = None
        self._missed = 0
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

    def untold(self, now_s: float, *, at_end: bool = False) -> int:
        """Returns how many missed polls are to be told now, and takes them as told."""
        if not self._missed:
            return 0
        if not at_end and self._told_s is not None and now_s - self._told_s < TOLD_EVERY_S:
            return 0
        missed, self._missed, self._told_s = self._missed, 0, now_s
        return missed
