"""How the node and the control process wait for their end. Both functions are for the main thread."""

from __future__ import annotations

import signal
import threading
from time import sleep

_LOOK_S = 0.2


def set_by_signals(stopping: threading.Event) -> None:
    """From now on SIGTERM and SIGINT set it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())


def wait_for(stopping: threading.Event) -> None:
    """By looking again and again: the kernel may hand a signal to another thread, as in a process that was
    continued just before, and that does not wake up a main thread that waits in `stopping.wait()`."""
    while not stopping.is_set():
        sleep(_LOOK_S)
