"""Speaks to a replica's gate from Spark's Python processes: one JSON object per line."""

from __future__ import annotations

import json
import socket
from typing import Any


class GateClosed(ConnectionError):
    """The replica's process has ended, or has closed its gate."""


class GateClient:
    """A connection to the gate at `address`, "<unix socket path>#<keeper>"."""

    def __init__(self, address: str) -> None:
        path, _, self._keeper = address.rpartition("#")
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError as error:
            raise GateClosed(f"no gate at {path}: {error}") from error
        self._file = self._socket.makefile("rwb")

    def ask(self, op: str, **arguments: Any) -> Any:
        request = {"op": op, "keeper": self._keeper, **arguments}
        try:
            self._file.write(json.dumps(request).encode() + b"\n")
            self._file.flush()
            line = self._file.readline()
        except OSError as error:
            raise GateClosed(f"the gate is gone: {error}") from error
        if not line:
            raise GateClosed("the gate is gone")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


_clients: dict[str, GateClient] = {}


def gate(address: str) -> GateClient:
    """This process's connection to that gate."""
    if address not in _clients:
        _clients[address] = GateClient(address)
    return _clients[address]


def hang_up(address: str) -> None:
    """Close this process's connection to that gate."""
    if address in _clients:
        _clients.pop(address).close()
