"""Runs a command that does not outlive the process that started it.

`python tether.py <parent pid> <command> ...` asks the kernel for SIGTERM when the parent's thread ends
(PR_SET_PDEATHSIG, which survives exec), and then becomes the command. It is a separate tiny program, so that
nothing runs between fork and exec in a process that has threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tethered(command: list[str]) -> list[str]:
    """Returns `command`, tied to the calling process.

    The thread that starts it must live as long as it should.
    """
    # -I -S: without site packages and the user's variables it starts in some 10 ms.
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that started this one has ended already")
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell wanted
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
