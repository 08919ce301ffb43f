"""Stands for one of Spark's Python processes, which the node's zygote has forked (see zygote.py).

Spark starts it as `python -m <module> ...`, gives it signals and waits for its end; all of that is passed on.
Without a zygote it becomes that Python itself. In either case it sets a path of its own. Spark would let them
import from its pyspark.zip. Python does not store what it compiles from an archive, so each process would
compile PySpark, which takes about a second.

This is a program of its own that imports nothing of the project, because it has to start in some 10 ms.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    environ = {**os.environ, "PYTHONPATH": os.environ["FOGLINE_WORKER_PATH"]}
    arguments = sys.argv[1:]
    zygote = _zygote()
    if zygote is None or arguments[:1] != ["-m"]:
        python = os.environ["FOGLINE_WORKER_PYTHON"]
        os.execve(python, [python, *arguments], environ)  # noqa: S606 - no shell wanted
    request = json.dumps({"arguments": arguments[1:], "environ": environ, "directory": os.getcwd()}).encode()
    socket.send_fds(zygote, [len(request).to_bytes(4, "big")], [0, 1, 2])
    zygote.sendall(request)
    pid = _number(zygote)
    if pid is None:
        sys.exit(1)  # the zygote has ended, because the node ends
    # Not SIGINT: on Ctrl-C the node ends its batches, and Java's children inherit that the signal is ignored.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = _number(zygote)
    if code is None:
        os.kill(pid, signal.SIGKILL)  # nobody waits for the fork any more, and Spark starts another one
        sys.exit(1)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _zygote() -> socket.socket | None:
    path = os.environ.get("FOGLINE_WORKER_ZYGOTE")
    if path is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        return None
    return connection


def _number(zygote: socket.socket) -> int | None:
    """Returns None if the zygote has ended."""
    data = zygote.recv(4, socket.MSG_WAITALL)
    return int.from_bytes(data, "big", signed=True) if len(data) == 4 else None


if __name__ == "__main__":
    main()
