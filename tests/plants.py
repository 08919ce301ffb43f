"""A system outside of Fogline that takes rows over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Plant:
    """A server that takes the number of each row, or answers 503 while it is shut."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.shut = False
        plant = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not plant.shut:
                    plant.taken.append(row["n"])
                self.send_response(503 if plant.shut else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

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
