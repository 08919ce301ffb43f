"""Ends all processes of the supervisor, whatever happens to the supervisor itself.

    guard (what the user started)  --fork-->  supervisor  --fork, exec-->  its children

The guard adopts every orphan below it and passes signals on. When the supervisor has ended, in whatever way,
the guard ends what is left. If the guard itself is killed, the kernel tells the supervisor
(PR_SET_PDEATHSIG), which then stops everything in order. Both hold the lock of the data directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 10.0
_POLL_S = 0.05


class AlreadyRunning(RuntimeError):
    """Another supervisor works in this data directory."""


def lock(data: Path) -> int:
    """Locks the data directory for this process and those forked from it.

    Returns the descriptor that holds it.

    The kernel frees the lock when its last holder ends, so a killed supervisor leaves no stale lock.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data / "supervisor.pid"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = path.read_text().strip() or "unknown"
        os.close(descriptor)
        raise AlreadyRunning(
            f"Fogline is already running in {data} (process {holder}), and goes on."
            " Stop it first, or start a second copy with another FOGLINE_DATA and other ports."
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def guarded(work: Callable[[], int]) -> int:
    """Runs `work` in a forked process. Returns its exit code when everything that it started has ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    guard = os.getpid()
    # Signals wait until the handlers are there: none may hit a guard that does not know its child.
    passed_on = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    child = os.fork()
    if child == 0:
        _become_supervisor(libc, guard, passed_on, work)
    for number in passed_on:
        signal.signal(number, lambda number, _: _tell(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    for number in passed_on:
        signal.signal(number, signal.SIG_IGN)  # the child's id may be somebody else's now
    _end_descendants()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become_supervisor(
    libc: ctypes.CDLL, guard: int, blocked: set[signal.Signals], work: Callable[[], int]
) -> None:
    """Runs the supervisor, and never returns.

    It has its own process group: a Ctrl-C comes through the guard.
    """
    code = 1
    try:
        os.setpgid(0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() == guard:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # without waiting for threads that still ask or prepare


def _tell(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has already ended, and the guard will end as well
        os.kill(child, number)


def _end_descendants() -> None:
    """Ends everything that is left, in any process group: SIGTERM, then SIGKILL after 10 s."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in psutil.Process().children(recursive=True):
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        deadline = time.monotonic() + _GRACE_S
        while _children_left() and time.monotonic() < deadline:
            time.sleep(_POLL_S)


def _children_left() -> bool:
    """Reaps what has ended. Returns whether children are left. Orphans below us become our children too."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
