"""Answers Spark's Python processes: which batch comes next, and what each task reads.

There is one server per node process. A request names the keeper that it is for, which answers for one group.
What they say is in pipeline_runtime.batch.gate_messages.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

from pipeline_runtime.batch.gate_messages import (
    GateKeeper,
    NotUnderstood,
    Request,
    Wire,
)

log = logging.getLogger(__name__)

RETRY_S = 1.0
_PREFIX = "fogline-gate-"


class GateServer:
    """A Unix socket in a directory that only this user can enter."""

    def __init__(self) -> None:
        # A Unix socket's path has at most about 100 characters, so it cannot lie in the node's directory.
        _remove_left_behind()
        self.directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock_file = _locked(self.directory)
        self._path = str(self.directory / "gate")
        self._keepers: dict[str, GateKeeper] = {}
        self._connections: dict[socket.socket, str] = {}  # each with the keeper that it asks
        self._lock = threading.Lock()  # guards both
        self._opened = count(1)
        self._closed = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._path)
        self._socket.listen(64)
        threading.Thread(target=self._accept, name="gate", daemon=True).start()

    def open(self, group: str, keeper: GateKeeper) -> str:
        """Returns the address of this keeper alone.

        Spark's processes remember what they know of an address. When the group is opened again, with other
        parameters say, it therefore gets another address.
        """
        name = f"{group}@{next(self._opened)}"
        with self._lock:
            self._keepers[name] = keeper
        return f"{self._path}#{name}"

    def shut(self, address: str) -> None:
        """Stop answering for this keeper, and hang up on all who have asked it, so that they notice."""
        name = address.rpartition("#")[2]
        with self._lock:
            self._keepers.pop(name, None)
            for connection, asked in self._connections.items():
                if asked == name:
                    with suppress(OSError):  # the other side has hung up already
                        connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends a waiting accept; close alone does not
        self._socket.close()
        self._lock_file.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _accept(self) -> None:
        """Runs until the gate is closed: without this thread Spark's processes would wait for ever."""
        accepted: socket.socket | None = None
        while not self._closed.is_set():
            try:
                if accepted is None:
                    accepted, _ = self._socket.accept()
                threading.Thread(
                    target=self._serve, args=(accepted,), name="gate client", daemon=True
                ).start()
                accepted = None
            except Exception as error:  # say, too many open files, or threads
                if self._closed.is_set():
                    return
                log.error(
                    "The gate cannot take a connection of Spark's: %s. Nothing is lost; it is tried again."
                    " If this goes on, raise this process's limits of open files and of threads.",
                    error,
                )
                self._closed.wait(RETRY_S)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                # The Spark process may end at any time, also while its last answer is being flushed.
                with suppress(OSError), Wire(connection) as wire:
                    self._serve_requests(connection, wire)
            finally:
                with self._lock:
                    self._connections.pop(connection, None)

    def _serve_requests(self, connection: socket.socket, wire: Wire) -> None:
        try:
            while (asked := wire.read_request()) is not None:
                name, request = asked
                keeper = self._asked(name, connection)
                if keeper is None:
                    wire.write_error(f"{name} is not running on this node")
                    return  # an address that was shut is never opened again
                _answer(wire, name, keeper, request)
        except NotUnderstood as error:
            log.error("The gate hangs up on a process of Spark's: %s", error)
            wire.write_error(str(error))

    def _asked(self, name: str, connection: socket.socket) -> GateKeeper | None:
        with self._lock:
            keeper = self._keepers.get(name)
            if keeper is not None:
                self._connections[connection] = name
            return keeper


def _locked(directory: Path) -> IO[str]:
    """A lock on the directory. It says that the directory is in use, until this process ends."""
    draft = directory / "lock.new"
    file = open(draft, "w")  # noqa: SIM115 - held until the gate is closed
    fcntl.flock(file, fcntl.LOCK_EX)
    draft.rename(directory / "lock")  # so that nobody sees the file unlocked
    return file


def _remove_left_behind() -> None:
    """Remove the directories of processes that were killed."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lock"):
        with suppress(OSError), open(lock) as file:  # it is another user's, or in use
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def _answer(wire: Wire, name: str, keeper: GateKeeper, request: Request[Any]) -> None:
    try:
        answer = request.answered_by(keeper)
    except Exception as error:  # it ends the query, not the gate
        log.exception("%s: the gate failed at %s", name, type(request).__name__)
        wire.write_error(f"{type(error).__name__}: {error}")
        return
    try:
        wire.write_answer(answer)
    except NotUnderstood as error:
        log.error("%s: the answer to %s: %s", name, type(request).__name__, error)
        wire.write_error(str(error))
