"""Starts the real server of a simulated machine, in the process of the connector that uses it.

It listens on a free port of this machine alone, takes no writes, and ends with the process: so it is there
exactly as long as its element runs, and moves with it. What it measures depends on the time alone, so a move
does not show.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

from pipeline_runtime.connectors.sdk import ConnectorError

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_TRIES = 3

Serve = Callable[[int, Callable[[], None]], Coroutine[Any, Any, None]]
"""Serves on a port of the loopback for ever; calls the second argument when it listens. Raises OSError if the
port is taken."""


def started(serve: Serve) -> int:
    """Starts a server in a thread that ends with the process. Returns its port. Raises ConnectorError."""
    for _ in range(_TRIES):  # another process may take the port in between
        port, ready = _free_port(), threading.Event()
        work = threading.Thread(target=_run, args=(serve, port, ready), name="simulated machine", daemon=True)
        work.start()
        while work.is_alive() and not ready.wait(0.05):
            pass
        if ready.is_set():
            return port
    raise ConnectorError("The simulated machine could not be started. The log of the node says why.")


def _run(serve: Serve, port: int, ready: threading.Event) -> None:
    try:
        asyncio.run(serve(port, ready.set))
    except OSError as error:
        log.warning("a simulated machine did not get the port %d: %s", port, error)


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])
