"""Finds nodes whose clocks are wrong: compares the time of a report with the time when it was heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from webapp.backends.control_state import CLOCK

OFF_MS = 5_000
RIGHT_MS = 4_000
"""Less than OFF_MS, so that a clock that is off by about that much is not reported again and again."""
REPORTS = 3
"""Redis or the network may delay a report. One of this many is taken to be in time."""


class Clocks:
    """Compares the nodes' clocks with Redis's, which control goes by."""

    def __init__(self) -> None:
        # node -> by how much its newest reports were late; below 0 for one that was made in the future
        self._late_ms: dict[str, deque[int]] = {}
        self._off: set[str] = set()  # nodes with an alert about their clock

    def alerts(self, node: str, at_ms: int, heard_ms: int, before: Collection[str] = ()) -> tuple[str, ...]:
        """Returns the alerts about a node's clock after a report that it made at `at_ms` by that clock.

        The text stays the same as long as the clock is wrong. `before` has the node's alerts so far. They
        stay until enough reports have come, for example after a start of control.
        """
        late = self._late_ms.setdefault(node, deque(maxlen=REPORTS))
        late.append(heard_ms - at_ms)
        if len(late) < REPORTS:
            told = tuple(text for text in (_alert(1), _alert(-1)) if text in before)
            self._off |= {node} if told else set()
            return told
        off_ms = min(late)
        if abs(off_ms) > (RIGHT_MS if node in self._off else OFF_MS):
            self._off.add(node)
            return (_alert(off_ms),)
        self._off.discard(node)
        return ()


def _alert(late_ms: int) -> str:
    return (
        f"{CLOCK}several seconds or more {'behind' if late_ms > 0 else 'ahead of'} Redis's. What runs "
        "there goes on, but the times that it reports are wrong. If it is hours behind, other machines "
        "refuse its checkpoints. Set its clock, best by NTP."
    )
