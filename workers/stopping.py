"""Ends a node or the control process after a signal, or after an error that ends one of its threads."""

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
    """Is set when the process should end. `failure` says why, unless somebody asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Ends the process because of an error. Has no effect if it is already ending."""
        if not self.is_set():
            self.failure = error
            self.set()

    @property
    def code(self) -> int:
        """The exit code of the process."""
        return 0 if self.failure is None else 1


def set_by_signals(stopping: threading.Event, *, first: threading.Event | None = None) -> None:
    """Lets SIGTERM and SIGINT set `stopping`. With `first`, the first signal sets only that.

    Must be called in the main thread.
    """

    def asked(*_: object) -> None:
        (stopping if first is None or first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked)


def failed_by_threads(stopping: Stopping) -> None:
    """Lets an error that ends a thread end the process.

    Others would wait for ever for what the thread did, while the process looks well. Its supervisor starts it
    again, and if that does not help, the detector sees its silence. A thread catches itself what it can live
    with or tries again. Threads of libraries are left alone: the libraries tell their callers.
    """

    def ended(args: threading.ExceptHookArgs) -> None:
        if stopping.is_set() or not _is_ours(args.exc_traceback):
            threading.__excepthook__(args)
            return
        error = args.exc_value or args.exc_type()
        try:
            log.critical(
                "The thread %r cannot go on: %s: %s. What was committed is safe. This process ends and is"
                " started again. If that happens each time, mend what the message names. If a module is"
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
    """Waits until one of the events is set, by looking again and again.

    The kernel may give a signal to another thread, for example in a process that was just continued. That
    does not wake up a main thread that waits in `stopping.wait()`.
    """
    while not any(event.is_set() for event in any_of):
        sleep(_LOOK_S)


def _is_ours(traceback: TracebackType | None) -> bool:
    """Returns whether the first function that `threading` called in the thread belongs to this project."""
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__") == threading.__name__:
        traceback = traceback.tb_next
    name = str(traceback.tb_frame.f_globals.get("__name__")) if traceback is not None else ""
    return name.partition(".")[0] in _OURS
