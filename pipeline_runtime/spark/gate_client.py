"""Speaks to a replica's gate from Spark's Python processes: one JSON object per line."""

from __future__ import annotations

import json
import socket
from typing import Any


class GateClosed(ConnectionError):
    """The replica's process has ended, or has closed its gate."""


class GateClient:
    """A connection to the gate at `address`, "<unix socket path>#<group id>"."""

    def __init__(self, address: str) -> None:
        path, _, self._group = address.rpartition("#")
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError as error:
            raise GateClosed(f"no gate at {path}: {error}") from error
        self._file = self._socket.makefile("rwb")

    def ask(self, op: str, **arguments: Any) -> Any:
        request = {"op": op, "group": self._group, **arguments}
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


_clients: dict[str, GateClient] = {}


def gate(address: str) -> GateClient:
    """This process's connection to that gate."""
    if address not in _clients:
        _clients[address] = GateClient(address)
    return _clients[address]
