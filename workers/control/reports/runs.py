"""Decides which run of each node counts. A run is one life of the node's process."""

from __future__ import annotations

from collections import deque


class Runs:
    """Accepts reports of the newest run of each node only, and each of them only once.

    A run that was replaced is never accepted again. So two processes under one name, or a report that was on
    its way while its node was restarted, cannot make the rows jump to and fro.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}
        self._superseded: dict[str, deque[str]] = {}

    def accepts(self, node: str, run_id: str, number: int, stored: tuple[str, int]) -> bool:
        """Returns whether a report counts.

        `stored` has the run and the number in the database. They count for the first report after a start of
        control.
        """
        newest_run, newest_number = self._newest.get(node, stored)
        if run_id == newest_run:
            if number <= newest_number:
                return False
        else:
            old = self._superseded.setdefault(node, deque(maxlen=100))
            if run_id in old:
                return False
            if newest_run:
                old.append(newest_run)
        self._newest[node] = (run_id, number)
        return True

    def forget(self, node: str) -> None:
        """The report that was accepted last was not written, so the database says which one is the newest."""
        self._newest.pop(node, None)
