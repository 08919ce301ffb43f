"""A system outside of Fogline that takes and gives rows over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Plant:
    """A server that takes the number of each row, or answers 503 while it is shut.

    `answers`: what it answers to GET, as JSON, by path.
    """

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.answers: dict[str, Any] = {}
        self.shut = False
        plant = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not plant.shut:
                    plant.taken.append(row["n"])
                self._say(503 if plant.shut else 200, b"")

            def do_GET(self) -> None:
                is_known = self.path in plant.answers
                self._say(200 if is_known else 404, json.dumps(plant.answers.get(self.path)).encode())

            def _say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.connection = {"host": "127.0.0.1", "port": self.server.server_port, "tls": False}
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@contextmanager
def a_plant() -> Iterator[Plant]:
    plant = Plant()
    try:
        yield plant
    finally:
        plant.server.shutdown()
        plant.server.server_close()
