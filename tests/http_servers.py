"""A real HTTP server for the tests, as a process that can be killed, hung and started again.

python -m tests.http_servers PORT JOURNAL     what the process runs
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

from pipeline_runtime.operators.http import HttpConnection
from tests.killable import KillableServer, keep

CLOCK_S = 0.1
SHOWN = 50
"""How many numbers it shows, and so for how long one of them can be asked for."""


def main(port: int, journal: str) -> None:
    """Answers GET with the newest numbers: each CLOCK_S there is a new one, which says how often CLOCK_S has
    passed since 1970. The number of each row that is sent to it by POST becomes a line of the journal before
    it answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            newest = int(time() / CLOCK_S)
            self._answer(json.dumps([{"n": n} for n in range(newest - SHOWN + 1, newest + 1)]).encode())

        def do_POST(self) -> None:
            keep(journal, json.loads(self.rfile.read(int(self.headers["Content-Length"])))["n"])
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return None

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


class HttpServer(KillableServer):
    """`journal`: the file for what is sent to it."""

    def __init__(self, journal: Path) -> None:
        super().__init__("the HTTP server", "tests.http_servers", str(journal))

    def connection(self) -> HttpConnection:
        return HttpConnection(host="127.0.0.1", port=self.port, tls=False)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
