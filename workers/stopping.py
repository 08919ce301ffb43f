"""What ends the node and the control process: a signal, or an error that ends one of their threads."""

from __future__ import annotations

import logging
import signal
import threading
from time import sleep
from types import TracebackType

log = logging.getLogger(__name__)

_LOOK_S = 0.2
_OURS = ("pipeline_runtime", "workers")


class Stopping(threading.Event):
    """Set once the process is to end; `failure` says why, when nobody asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """The process is of no use any more. Without effect when it ends already."""
        if not self.is_set():
            self.failure = error
            self.set()

    @property
    def code(self) -> int:
        """What the process exits with."""
        return 0 if self.failure is None else 1


def set_by_signals(stopping: threading.Event, *, first: threading.Event | None = None) -> None:
    """From now on SIGTERM and SIGINT set it; where `first` is given, the first signal sets only that. For the
    main thread."""

    def asked(*_: object) -> None:
        (stopping if first is None or first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked)


def failed_by_threads(stopping: Stopping) -> None:
    """From now on an error that ends a thread fails it.

    Whoever waits for what that thread did would wait for ever, while the process looks well: its supervisor
    starts it anew, and should that not help, the detector sees its silence. What a thread can live with, or
    tries again, it catches itself. Threads of libraries are left to them: those tell their callers.
    """

    def ended(args: threading.ExceptHookArgs) -> None:
        if stopping.is_set() or not _is_ours(args.exc_traceback):
            threading.__excepthook__(args)
            return
        error = args.exc_value or args.exc_type()
        try:
            log.critical(
                "The thread %r cannot go on: %s: %s. What was committed is safe. This process ends, to be"
                " started again. If that happens each time, mend what the message names; when a module is"
                " missing, delete .venv and start as before.",
                args.thread.name if args.thread else "?",
                args.exc_type.__name__,
                error,
                exc_info=(args.exc_type, error, args.exc_traceback),
            )
        finally:
            stopping.fail(error)

    threading.excepthook = ended


def wait_for(*any_of: threading.Event) -> None:
    """By looking again and again: the kernel may hand a signal to another thread, as in a process that was
    continued just before, and that does not wake up a main thread that waits in `stopping.wait()`."""
    while not any(event.is_set() for event in any_of):
        sleep(_LOOK_S)


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether the thread's body, the first function that `threading` called, is of this project."""
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__") == threading.__name__:
        traceback = traceback.tb_next
    name = str(traceback.tb_frame.f_globals.get("__name__")) if traceback is not None else ""
    return name.partition(".")[0] in _OURS
