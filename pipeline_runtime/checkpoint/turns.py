"""Makes Python switch between threads more often while a checkpoint is made.

The thread of a batch waits about a dozen times for its task or for the broker. Each time it needs the
interpreter back, and a thread that computes gives it back only after 5 ms. A shorter interval at all times
would slow down threads that compute together: four partitions had a sixth less throughput.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SHORT_S = 0.0005
_lock = threading.Lock()
_makes = 0
_USUAL_S = sys.getswitchinterval()


@contextmanager
def short_turns() -> Iterator[None]:
    """Shortens the interval for the whole process, until the last caller has left this context."""
    global _makes
    with _lock:
        if _makes == 0:
            sys.setswitchinterval(SHORT_S)
        _makes += 1
    try:
        yield
    finally:
        with _lock:
            _makes -= 1
            if _makes == 0:
                sys.setswitchinterval(_USUAL_S)
