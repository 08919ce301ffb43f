"""Speaks to a replica's gate from Spark's Python processes, as pipeline_runtime.batch.gate says."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Payload = bytes | memoryview


class GateClosed(ConnectionError):
    """The replica's process has ended, or has closed its gate."""


@dataclass(frozen=True)
class Slice:
    """What is read of one partition for a batch: the gate answers some to each of the batch's tasks."""

    input: int  # index into group_inputs; -1: a flush row for every input
    batch_time_ms: int
    partition: int = 0
    start: Any = None  # an offset, or a source's position
    end: Any = None
    records: list[list[Any]] | None = None  # of a topic: its rows, if the gate has read them ahead


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

    def ask(self, op: str, *, payload: Payload | None = None, **arguments: Any) -> Any:
        request = {"op": op, "keeper": self._keeper, **arguments}
        if payload is not None:
            request["payload"] = len(payload)
        try:
            self._file.write(json.dumps(request).encode() + b"\n")
            if payload is not None:
                self._file.write(payload)
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

    def hung_up(self) -> bool:
        """Whether the gate has: unasked it sends nothing, so there is nothing to read but the end."""
        try:
            return self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        with suppress(OSError):  # what it could not send any more
            self._file.close()
        self._socket.close()


_clients: dict[str, GateClient] = {}


def gate(address: str) -> GateClient:
    """This process's connection to that gate; with a new one, those are closed whose gate has hung up."""
    if address not in _clients:
        for departed in [each for each, client in _clients.items() if client.hung_up()]:
            _clients.pop(departed).close()
        _clients[address] = GateClient(address)
    return _clients[address]


def is_connected(address: str) -> bool:
    """Whether this process has a connection to that gate, as far as it has noticed."""
    return address in _clients
