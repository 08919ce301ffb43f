"""A process that has imported what Spark's Python processes need, and forks each of them.

Spark starts seven Python processes, one after another, before the first batch in a new Java. Each would
import the same libraries, for about a second of CPU. Here they are imported once for the node, and the forks
share the memory.

`worker_start.py` asks for a fork and stands for it. It passes on its streams, its environment and its
signals, and ends when the fork ends. The fork is killed when `worker_start.py` is killed.

On the Unix socket the asking process sends the length of its request (4 bytes, with the streams'
descriptors), then the request as JSON. It is sent the fork's id and, when the fork has ended, its exit code
(4 bytes each).
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline_runtime.garbage import settle
from pipeline_runtime.spark.freed_memory import keep_freed_memory

ENVIRONMENT = "FOGLINE_WORKER_ZYGOTE"
_REQUEST_TIMEOUT_S = 30.0
# What the modules need that Spark runs. Not these modules themselves: runpy would warn.
_IMPORTED = (
    *("numpy", "pandas", "pyarrow.compute", "pyspark.worker", "pyspark.sql.pandas.serializers"),
    *("pyspark.sql.pandas.types", "pyspark.sql.conversion", "pyspark.sql.worker.lookup_data_sources"),
    *("pyspark.sql.worker.create_data_source", "pyspark.sql.worker.plan_data_source_read"),
    *("pyspark.sql.streaming.datasource", "pipeline_runtime.spark.source", "pipeline_runtime.batch.reader"),
    "pipeline_runtime.batch.group",
)
# Arrow's own allocator takes 4 MB more in each process, and is no faster here.
_ENVIRON = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


class Zygote:
    """The node's side. `sockets`: a directory that nobody else can enter, because whoever reaches the zygote
    can run code."""

    def __init__(self, sockets: Path) -> None:
        self.path = sockets / "zygote"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path))
            # A process that asks before the imports are done waits. If the zygote has died, nobody listens
            # any more.
            listener.listen(64)
            command = [sys.executable, "-u", "-m", __name__, str(listener.fileno())]
            # Spark needs the same hashes in all processes.
            environ = {**_ENVIRON, **os.environ, "PYTHONHASHSEED": "0"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=environ, pass_fds=[listener.fileno()]
            )

    def close(self) -> None:
        """End the zygote. The forks end with Java, or have ended already."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self.path.unlink(missing_ok=True)


class _Forks:
    """The process's side: forks until the node closes its end of standard input."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._asked: dict[int, socket.socket] = {}  # by the fork's id
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._selector = selectors.DefaultSelector()

    def serve(self) -> dict[str, Any] | None:
        """Fork for each request. Returns the request in the fork that it is for, and None in the zygote, when
        that is to end."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the node to handle
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno())
        for file in (0, self._listener, self._woken):
            self._selector.register(file, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    return None
                if key.fd == self._woken.fileno():
                    self._woken.recv(4096)
                    self._reap()
                elif key.fd != self._listener.fileno():
                    self._hung_up(key.data)
                elif (request := self._accept()) is not None:
                    return request

    def _accept(self) -> dict[str, Any] | None:
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_TIMEOUT_S)
        try:
            length, streams, _, _ = socket.recv_fds(connection, 4, 3)
            with connection.makefile("rb") as file:
                request: dict[str, Any] = json.loads(file.read(int.from_bytes(length, "big")))
        except (OSError, ValueError):  # the asking process has ended already
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._become(connection, streams)
            return request
        for stream in streams:
            os.close(stream)
        self._asked[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        self._tell(connection, pid)
        return None

    def _become(self, connection: socket.socket, streams: list[int]) -> None:
        """Called in the fork: keep nothing of the zygote but what it has imported."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # SIGINT stays ignored, as in all children of Java
        self._selector.close()
        for other in (self._listener, self._woken, self._wake, connection, *self._asked.values()):
            other.close()
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
            os.close(stream)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                connection = self._asked.pop(pid)
                with suppress(KeyError):
                    self._selector.unregister(connection)
                self._tell(connection, os.waitstatus_to_exitcode(status))
                connection.close()

    def _hung_up(self, pid: int) -> None:
        """The process that stands for the fork was killed."""
        connection = self._asked.get(pid)
        if connection is not None:  # otherwise the fork has just ended by itself
            self._selector.unregister(connection)
            os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _tell(connection: socket.socket, number: int) -> None:
        with suppress(OSError):  # nobody stands for the fork any more
            connection.sendall(number.to_bytes(4, "big", signed=True))


def main() -> None:
    keep_freed_memory()
    for name in _IMPORTED:
        importlib.import_module(name)
    # Only the built-in operators: what installed packages import may start threads, which a fork does not
    # have.
    importlib.import_module("pipeline_runtime.operators.registry").built_in()
    settle()
    request = _Forks(socket.socket(fileno=int(sys.argv[1]))).serve()
    if request is not None:
        _run(**request)


def _run(arguments: list[str], environ: dict[str, str], directory: str) -> None:
    """Do what `python -m <arguments>` does."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
