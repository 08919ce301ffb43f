"""Which run of each node is listened to."""

from __future__ import annotations

from collections import deque


class Runs:
    """Which run of each node is listened to: the newest that was heard of, and only forwards.

    A run that was superseded is never listened to again, so two processes under one name, or a
    report that was under way while its node was restarted, cannot make the rows jump to and fro.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}
        self._superseded: dict[str, deque[str]] = {}

    def accepts(self, node: str, run_id: str, number: int, stored: tuple[str, int]) -> bool:
        """`stored`: run and number in the database, for the first report after a start of control."""
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
        """What was accepted last was not written: the database says again what is the newest."""
        self._newest.pop(node, None)
