"""Answers Spark's Python processes: which batch comes next, and what each task reads.

One server per node process; a request names the keeper that it is for. Every answer is one JSON object
per line, `{"value": ...}` or `{"error": ...}`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

log = logging.getLogger(__name__)


class GateKeeper(Protocol):
    """What a replica answers. All of it JSON."""

    def answer(self, op: str, arguments: dict[str, Any]) -> Any: ...


class GateServer:
    """A Unix socket in a directory that only this user can enter."""

    def __init__(self) -> None:
        # Unix socket paths end at about 100 characters, so it does not lie in the node's directory.
        self._directory = tempfile.mkdtemp(prefix="fogline-gate-")
        self._path = os.path.join(self._directory, "gate")
        self._keepers: dict[str, GateKeeper] = {}
        self._opened = count(1)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._path)
        self._socket.listen(64)
        threading.Thread(target=self._accept, name="gate", daemon=True).start()

    def open(self, group: str, keeper: GateKeeper) -> str:
        """The address of this keeper alone: Spark's processes keep what they know of an address, and the
        group may be opened again with other parameters."""
        name = f"{group}@{next(self._opened)}"
        self._keepers[name] = keeper
        return f"{self._path}#{name}"

    def shut(self, address: str) -> None:
        self._keepers.pop(address.rpartition("#")[2], None)

    def close(self) -> None:
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), name="gate client", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The Spark process may end at any time, also while its last answer is still to be flushed.
        with suppress(OSError, ValueError), connection, connection.makefile("rwb") as stream:
            for line in stream:
                stream.write(json.dumps(self._answer(line)).encode() + b"\n")
                stream.flush()

    def _answer(self, line: bytes) -> dict[str, Any]:
        request = json.loads(line)
        op, name = request.pop("op"), request.pop("keeper")
        keeper = self._keepers.get(name)
        if keeper is None:
            return {"error": f"{name} is not running on this node"}
        try:
            return {"value": keeper.answer(op, request)}
        except Exception as error:  # the query fails with it, the gate stays
            log.exception("%s: the gate failed at %s", name, op)
            return {"error": f"{type(error).__name__}: {error}"}
