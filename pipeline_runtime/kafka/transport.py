"""Writes a request as soon as there is one.

kafka-python first asks the kernel whether it would take the bytes. It nearly always does, so each request
takes one turn of the client's loop more than it needs, and four calls of the kernel.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from time import monotonic
from typing import Any

from kafka.net.transport import KafkaTCPTransport


def write_at_once() -> None:
    """Makes every client of this process do so, including those that are open."""
    KafkaTCPTransport._write_to_sock = _write_to_sock


async def _write_to_sock(self: Any) -> None:
    """Does what KafkaTCPTransport's method does. It waits for the kernel only after it has tried."""
    try:
        while self._write_buffer:
            sent, error = self._sock_send()
            if error:
                self.abort(error=error)
                return
            self.last_write = monotonic()
            if self._protocol and self._protocol._sensors:
                self._protocol._sensors.bytes_sent.record(sent)
            if self._write_buffer:
                await self._net.wait_write(self._sock)
    finally:
        self._writing = False
    if self._closed:
        self._close()
    elif not self._write:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
