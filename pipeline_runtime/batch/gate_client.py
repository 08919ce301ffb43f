"""Speaks to a replica's gate from Spark's Python processes, as pipeline_runtime.batch.gate_messages says."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TypeVar

from pipeline_runtime.batch.gate_messages import Request, Wire

A = TypeVar("A")


class GateClosed(ConnectionError):
    """The replica's process has ended, or has closed its gate."""


class GateClient:
    """A connection to the gate at `address`, "<unix socket path>#<keeper>". For one thread at a time."""

    def __init__(self, address: str) -> None:
        path, _, self._keeper = address.rpartition("#")
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError as error:
            raise GateClosed(f"no gate at {path}: {error}") from error
        self._wire = Wire(self._socket)
        self._told: Request[None] | None = None  # whose answer was not read yet

    def ask(self, request: Request[A]) -> A:
        """Blocks until the gate answers. Raises GateClosed, and RuntimeError if the gate could not answer."""
        try:
            self._wire.send(self._keeper, request)
            return self._answer(request)
        except EOFError:
            raise GateClosed("the gate is gone") from None
        except OSError as error:
            raise GateClosed(f"the gate is gone: {error}") from error

    def tell(self, request: Request[None]) -> None:
        """Asks without waiting for the answer. The next call waits for it, and raises what the gate could not
        answer. Raises GateClosed."""
        try:
            self._settle()
            self._wire.send(self._keeper, request)
        except EOFError:
            raise GateClosed("the gate is gone") from None
        except OSError as error:
            raise GateClosed(f"the gate is gone: {error}") from error
        self._told = request

    def _answer(self, request: Request[A]) -> A:
        try:
            self._settle()
        except RuntimeError:
            self._wire.answer_to(request)  # the next request would take it for its own answer
            raise
        return self._wire.answer_to(request)

    def _settle(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            self._wire.answer_to(told)

    def hung_up(self) -> bool:
        """Whether the gate has closed this connection. It sends nothing unasked: only the end can be read."""
        try:
            return self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        with suppress(OSError):  # what can no longer be sent
            self._wire.close()
        self._socket.close()


_clients: dict[str, GateClient] = {}


def gate(address: str) -> GateClient:
    """This process's connection to that gate.

    When it opens a new one, it closes all connections whose gates have hung up.
    """
    if address not in _clients:
        for departed in [each for each, client in _clients.items() if client.hung_up()]:
            _clients.pop(departed).close()
        _clients[address] = GateClient(address)
    return _clients[address]


def is_connected(address: str) -> bool:
    """Whether this process has a connection to that gate, as far as it has noticed."""
    return address in _clients
