"""How long a connector waits before it tries again. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_S = 0.5
MOST_S = 30.0
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
        failures = 1 if connected_s >= STEADY_S else self.failures + 1
        if lasting:
            return replace(self, failures=failures), LASTING_S
        most_s = min(MOST_S, FIRST_S * 2 ** min(failures - 1, 10))
        return replace(self, failures=failures), most_s * (0.5 + chance / 2)
