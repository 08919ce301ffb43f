"""The one way in which a test waits: for a condition, never for a length of time."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 120.0
"""For all that must come to be: more than the slowest of machines needs, so that only a fault is seen."""
_POLL_S_MIN, _POLL_S_MAX = 0.02, 0.25
"""What does not come at once is looked for less and less often: looking costs what it waits for."""


def wait_until(
    condition: Callable[[], Any],
    what: str | Callable[[], str] = "",
    timeout_s: float = PATIENCE_S,
    *,
    look_every_s: float = _POLL_S_MAX,
) -> Any:
    """Its first true value. AssertionError after `timeout_s`, with `what` was awaited and the last value.

    `look_every_s`: the most that is waited between two looks.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = _POLL_S_MIN
    while not (value := condition()):
        if time.monotonic() >= deadline:
            awaited = what if isinstance(what, str) else what()
            faulthandler.dump_traceback(all_threads=True)  # whatever hangs may be in this process
            raise AssertionError(f"still waiting for {awaited} after {timeout_s:.0f} s (last: {value!r})")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.25, look_every_s)
    return value
