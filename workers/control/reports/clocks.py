"""Which nodes' clocks are wrong: a comparison of when reports were made with when they were heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

OFF_MS = 5_000
RIGHT_MS = 4_000
"""Less than what is told, so that a clock just about there is not told of again and again."""
REPORTS = 3
"""A report may be late because Redis or the network was. Of so many one is in time."""


class Clocks:
    """The nodes' clocks against Redis's, which control goes by."""

    def __init__(self) -> None:
        # Of each node's newest reports; below 0: made in the future.
        self._late_ms: dict[str, deque[int]] = {}
        self._off: set[str] = set()  # nodes whose clock is told to be wrong

    def alerts(self, node: str, at_ms: int, heard_ms: int, before: Collection[str] = ()) -> tuple[str, ...]:
        """What is wrong after a report of `at_ms` by the node's clock; the same text as long as it lasts.

        `before`: what is told of the node; it stays until enough is known, such as after a start of control.
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
        f"Its clock is several seconds or more {'behind' if late_ms > 0 else 'ahead of'} Redis's. What runs "
        "there goes on, but times that it reports are wrong, and if it is hours behind, its checkpoints are "
        "refused elsewhere. Set its clock, best by NTP."
    )
