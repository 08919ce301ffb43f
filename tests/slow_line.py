"""A line to a port of this machine that carries few bytes a second towards it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PART_S = 0.05
_HELD_BYTES = 16_384
"""About how much is on the line: of both sockets' buffers."""


@contextmanager
def slow_line(target: int, bytes_per_s: int) -> Iterator[int]:
    """Yields the port of the line's end."""
    stop = threading.Event()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _HELD_BYTES)  # each connection inherits it
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def accept() -> None:
            with suppress(OSError):  # it is closed
                while True:
                    near, _ = listening.accept()
                    far = socket.create_connection(("127.0.0.1", target))
                    for pair, part in (((near, far), int(bytes_per_s * _PART_S)), ((far, near), 65_536)):
                        threading.Thread(target=_carry, args=(*pair, part, stop), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            stop.set()
            listening.shutdown(socket.SHUT_RDWR)


def _carry(source: socket.socket, to: socket.socket, part: int, stop: threading.Event) -> None:
    with suppress(OSError):
        while not stop.wait(_PART_S) and (data := source.recv(part)):
            to.sendall(data)
    for each in (source, to):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
