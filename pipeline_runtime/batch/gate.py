"""Answers Spark's Python processes: which batch comes next, and what each task reads.

One server per node process; a request names the keeper that it is for. Every request and every answer is one
JSON object per line; answers are `{"value": ...}` or `{"error": ...}`. Behind a request with a `payload`
follow that many bytes.
"""

from __future__ import annotations

import fcntl
import json
import logging
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, Protocol

log = logging.getLogger(__name__)

RETRY_S = 1.0
_PREFIX = "fogline-gate-"


class GateKeeper(Protocol):
    """What a replica answers. All of it JSON, but for the bytes of a `payload`."""

    def answer(self, op: str, arguments: dict[str, Any]) -> Any: ...


class GateServer:
    """A Unix socket in a directory that only this user can enter."""

    def __init__(self) -> None:
        # Unix socket paths end at about 100 characters, so it does not lie in the node's directory.
        _remove_left_behind()
        self.directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock_file = _locked(self.directory)
        self._path = str(self.directory / "gate")
        self._keepers: dict[str, GateKeeper] = {}
        self._connections: dict[socket.socket, str] = {}  # each with the keeper that was asked by it
        self._lock = threading.Lock()  # guards the two
        self._opened = count(1)
        self._closed = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._path)
        self._socket.listen(64)
        threading.Thread(target=self._accept, name="gate", daemon=True).start()

    def open(self, group: str, keeper: GateKeeper) -> str:
        """The address of this keeper alone: Spark's processes keep what they know of an address, and the
        group may be opened again with other parameters."""
        name = f"{group}@{next(self._opened)}"
        with self._lock:
            self._keepers[name] = keeper
        return f"{self._path}#{name}"

    def shut(self, address: str) -> None:
        """Answer for this keeper no more, and hang up on all who asked it: so they notice, too."""
        name = address.rpartition("#")[2]
        with self._lock:
            self._keepers.pop(name, None)
            for connection, asked in self._connections.items():
                if asked == name:
                    with suppress(OSError):  # the other side was first
                        connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends the accept that waits, as close alone does not
        self._socket.close()
        self._lock_file.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _accept(self) -> None:
        """Until the gate is closed: without this thread Spark's processes would wait for ever, silently."""
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
                # The Spark process may end at any time, also while its last answer is still to be flushed.
                with suppress(OSError, ValueError), connection.makefile("rwb") as stream:
                    for line in stream:
                        request = json.loads(line)
                        op, name = request.pop("op"), request.pop("keeper")
                        if "payload" in request:
                            size, request["payload"] = request["payload"], stream.read(request["payload"])
                            if len(request["payload"]) < size:
                                break  # its process has ended
                        keeper = self._asked(name, connection)
                        stream.write(json.dumps(_answer(name, keeper, op, request)).encode() + b"\n")
                        stream.flush()
                        if keeper is None:
                            break  # it never comes back
            finally:
                with self._lock:
                    self._connections.pop(connection, None)

    def _asked(self, name: str, connection: socket.socket) -> GateKeeper | None:
        with self._lock:
            keeper = self._keepers.get(name)
            if keeper is not None:
                self._connections[connection] = name
            return keeper


def _locked(directory: Path) -> IO[str]:
    """Says, as long as its process lives, that the directory is in use."""
    draft = directory / "lock.new"
    file = open(draft, "w")  # noqa: SIM115 - held until the gate is closed
    fcntl.flock(file, fcntl.LOCK_EX)
    draft.rename(directory / "lock")  # nobody sees it unlocked
    return file


def _remove_left_behind() -> None:
    """The directories of processes that were killed."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lock"):
        with suppress(OSError), open(lock) as file:  # another user's, or in use
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def _answer(name: str, keeper: GateKeeper | None, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if keeper is None:
        return {"error": f"{name} is not running on this node"}
    try:
        return {"value": keeper.answer(op, arguments)}
    except Exception as error:  # the query fails with it, the gate stays
        log.exception("%s: the gate failed at %s", name, op)
        return {"error": f"{type(error).__name__}: {error}"}
