"""Takes less CPU for each request than kafka-python does.

A request goes in a task of the client's loop, which first asks the kernel whether it would take the bytes. It
nearly always does. So each request takes two turns of the loop more than it needs, and five calls of the
kernel. For each answer it asks the kernel to watch the socket, and then no longer to watch it.

It also makes texts that nobody reads. Each time it begins to wait for a socket, the selector says by an error
that it does not know the socket, with a description for which the kernel is asked twice. And each turn of the
loop tells some ten things to a log of a level that nobody turns on.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from select import POLLIN, poll
from selectors import EVENT_READ
from time import monotonic
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net import selector
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector, Task
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

_AT_ONCE_BYTES = 1 << 16


def write_at_once() -> None:
    """Makes every client of this process do so, including those that are open."""
    KafkaTCPTransport._write_to_sock = _write_to_sock
    KafkaTCPTransport.write = _write


def read_at_once(transport: Any, others: Iterable[Any], loop: NetworkSelector, seconds: float) -> bool:
    """Waits for at most so long until something comes, and hands it to the connection. Returns whether
    something came. `others`: all transports of the client.

    If not, the loop has something to do: the connection uses TLS or has ended, somebody wakes the loop, a
    task of its own is due, or the kernel has not taken a whole request. Only the thread that uses the client
    may call this.
    """
    socket_ = getattr(transport, "_sock", None)
    if socket_ is None or type(transport) is not KafkaTCPTransport or loop._ready:
        return False
    if any(each is not None and each._writing for each in others):
        return False
    if loop._scheduled:
        seconds = min(seconds, loop._scheduled[0][0] - monotonic())
    waiting = poll()
    waiting.register(socket_, POLLIN)
    waiting.register(loop._wakeup_r, POLLIN)
    if waiting.poll(max(seconds, 0.0) * 1000) != [(socket_.fileno(), POLLIN)]:
        return False
    try:
        data = socket_.recv(_AT_ONCE_BYTES)
    except OSError:
        data = b""
    if not data:
        return False  # the loop's own read finds the same, and says what it means
    transport.last_read = monotonic()
    try:
        transport._protocol.data_received(data)
    except Exception as error:  # what no answer can be made of
        transport.abort(KafkaConnectionError(error))
    return True


def close_what_failed() -> None:
    """Makes every client of this process close the socket of a connection that failed. kafka-python leaves it
    open until Python looks for garbage, which may be long after the next thousand tries."""
    if not hasattr(KafkaNetSocket.sock_connect, "closes"):
        KafkaNetSocket.sock_connect = _closing(KafkaNetSocket.sock_connect)


def _closing(connect: Callable[..., Awaitable[socket.socket]]) -> Callable[..., Awaitable[socket.socket]]:
    async def connected(
        self: Any, net: Any, sock: socket.socket, *more: Any, **options: Any
    ) -> socket.socket:
        try:
            return await connect(self, net, sock, *more, **options)
        except BaseException:
            sock.close()
            raise

    connected.closes = True  # type: ignore[attr-defined]
    return connected


def make_no_unread_texts() -> None:
    """Makes every client of this process do so, including those that are open."""
    NetworkSelector.register_event = _register_event
    selector.log_trace = _tell_nobody


def read_to_the_end() -> None:
    """Makes every client of this process read what a broker has sent before it closed the connection.

    kafka-python throws that away, if both are there at once. So nobody would hear why a login is refused.
    """
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        if not hasattr(transport._sock_recv, "reads_to_the_end"):
            transport._sock_recv = _data_first(transport._sock_recv)


def _data_first(receive: Callable[[Any], tuple[bytes, Any]]) -> Callable[[Any], tuple[bytes, Any]]:
    def received(self: Any) -> tuple[bytes, Any]:
        data, error = receive(self)
        # Whoever has closed the connection reads nothing. The next call finds the error again.
        return (data, None) if data and self._protocol is not None else (data, error)

    received.reads_to_the_end = True  # type: ignore[attr-defined]
    return received


_register_known = NetworkSelector.register_event
_write_by_loop = KafkaTCPTransport.write


def _register_event(self: Any, fileobj: socket.socket, event: int, task: Any) -> None:
    """Does what NetworkSelector's method does."""
    descriptor = fileobj.fileno()
    if descriptor >= 0:
        try:
            self._selector.get_key(descriptor)  # a number's error is soon described
        except KeyError:
            task = task if isinstance(task, Task) else Task(task)
            self._selector.register(fileobj, event, (task, None) if event == EVENT_READ else (None, task))
            return
    _register_known(self, fileobj, event, task)


def _tell_nobody(*_: Any) -> None:
    pass


def _write(self: Any, data: bytes | memoryview) -> None:
    """Does what KafkaTCPTransport's method does. It leaves to the loop only what the kernel does not take."""
    if type(self) is KafkaTCPTransport and not self._writing and self._write and not self._closed:
        with suppress(OSError):  # also BlockingIOError; the loop finds any other error again
            sent = self._sock.send(data)
            self.last_write = monotonic()
            if self._protocol and self._protocol._sensors:
                self._protocol._sensors.bytes_sent.record(sent)
            data = memoryview(data)[sent:]
    if data:
        _write_by_loop(self, data)


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
