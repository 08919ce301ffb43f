"""Computes how long a connector waits before it tries again. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_S = 0.5
YOUNG_MOST_S = 5.0
MOST_S = 30.0
YOUNG = 24
"""After so few failures in a row the outage is young, and the waits are short: they add up to about 80 s,
beside the time that the tries take."""
LASTING_S = 60.0
"""After an error that only a change of the parameters or the connection ends."""
STEADY_S = 10.0
"""Who was connected for this long has recovered: the next wait is short again."""


@dataclass(frozen=True)
class Backoff:
    failures: int = 0  # in a row

    def failed(self, connected_s: float, *, lasting: bool, chance: float) -> tuple[Backoff, float]:
        """Returns the next state, and the seconds to wait. `connected_s`: how long it was connected before
        it failed. `chance`, from 0 to 1, spreads those that failed at the same time."""
        after = replace(self, failures=1 if connected_s >= STEADY_S else self.failures + 1)
        if lasting:
            return after, LASTING_S
        return after, pause_s(after.failures) * (0.5 + chance / 2)

    def within_s(self, *, lasting: bool) -> float:
        """Returns the longest that it waits now. It changes seldom, so people may be told it."""
        return LASTING_S if lasting else _most_s(self.failures)


def pause_s(failures: int) -> float:
    """Returns the longest wait after so many failures in a row."""
    return min(_most_s(failures), FIRST_S * 2.0 ** min(failures - 1, 10))


def _most_s(failures: int) -> float:
    return YOUNG_MOST_S if failures <= YOUNG else MOST_S
