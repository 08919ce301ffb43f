"""A chunk service in this process, and a line to it that breaks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.applications import Starlette

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.service import Server, serve

KEY = "key"


def token(scope: str = "*") -> str:
    return access.mint(KEY, scope, time.time() + 3600)


@contextmanager
def serving(app: Starlette) -> Iterator[Server]:
    running = serve(app, "127.0.0.1", 0)
    try:
        yield running
    finally:
        running.close()


class BreakingProxy:
    """TCP between client and service; breaks the connection after `budget` bytes towards the client, or
    the service. `passed`: bytes in that direction."""

    def __init__(self, port: int, budget: int | None, towards_service: bool = False) -> None:
        self.budget = budget
        self.broken = 0
        self.passed = 0
        self._lock = threading.Lock()  # connections are parallel, and it breaks one of them
        self._towards_service = towards_service
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # the service has ended, and whoever probes it has not heard of that yet
                near.close()
                continue
            for pair in ((near, far, self._towards_service), (far, near, not self._towards_service)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, origin: socket.socket, target: socket.socket, counted: bool) -> None:
        try:
            while piece := origin.recv(1 << 16):
                target.sendall(piece)
                if not counted:
                    continue
                if self._is_the_last(len(piece)):
                    break
        except OSError:
            pass
        for end in (origin, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _is_the_last(self, size: int) -> bool:
        """Whether the connection that has passed on so many bytes breaks now."""
        with self._lock:
            self.passed += size
            if self.budget is None or self.passed < self.budget:
                return False
            self.budget = None
            self.broken += 1
            return True

    def close(self) -> None:
        self._listener.close()


@contextmanager
def breaking(port: int, budget: int | None, towards_service: bool = False) -> Iterator[BreakingProxy]:
    proxy = BreakingProxy(port, budget, towards_service)
    try:
        yield proxy
    finally:
        proxy.close()
