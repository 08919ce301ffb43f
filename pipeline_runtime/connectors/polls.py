"""Computes when polls of a system are due, and how many were missed. Pure: the caller passes the times."""

from __future__ import annotations

TOLD_EVERY_S = 10.0
"""The least time in s between two reports of missed polls. All polls missed in between are one gap, so that a
slow system does not cause one event for each poll."""


class Polls:
    """Counts the polls of one connector. It lives as long as the connector's process, so it also counts the
    polls that were due while the connection was away.

    Call `begun` when a poll begins. Then call `worked` if the poll gave a row, or else `failed`. The polls
    that were missed since the last `worked` are not reported yet. If no later poll of this process works, the
    next process reports them (`missed_in`). All times are in s on one monotonic clock.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s: float | None = None
        self._missed = 0  # missed since the last poll that worked
        self._untold = 0  # missed before that poll, and not reported yet
        self._told_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """Returns the time in s until the next poll is due. Returns 0 if it is due now."""
        return 0.0 if self._due_s is None else max(0.0, self._due_s - now_s)

    def begun(self, now_s: float) -> None:
        """Notes that a poll begins now. Counts the polls that were due before it as missed."""
        late = 0 if self._due_s is None else int((now_s - self._due_s) // self._every_s)
        self._missed += max(0, late)
        first_s = now_s if self._due_s is None else self._due_s
        self._due_s = first_s + (max(0, late) + 1) * self._every_s

    def failed(self) -> None:
        """Notes that the newest poll gave no row. Counts it as missed."""
        self._missed += 1

    def worked(self, now_s: float) -> int:
        """Notes that the newest poll has worked. Returns how many missed polls the caller has to report now,
        and counts them as reported."""
        self._untold += self._missed
        self._missed = 0
        if not self._untold or (self._told_s is not None and now_s - self._told_s < TOLD_EVERY_S):
            return 0
        self._told_s = now_s
        return self.left()

    def left(self) -> int:
        """Returns how many polls that were missed before the last `worked` are not reported yet. Counts them
        as reported. Call it when the process ends."""
        untold, self._untold = self._untold, 0
        return untold


def missed_in(pause_s: float, every_s: float) -> int:
    """Returns how many polls were missed between two working polls. `pause_s`: the time between the two.
    `every_s`: the time between two due polls."""
    return max(0, int(pause_s // every_s) - 1)
