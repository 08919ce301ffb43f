"""A schema registry for tests: what Confluent's protocol says of schemas by number and of subjects."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any

from pipeline_runtime.connectors.schema_registry import SchemaRegistry
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection


class RegistryServer:
    """Serves from `with` to its end. `asked` counts the requests, and `connections` those. With a login it
    refuses all others."""

    def __init__(
        self,
        port: int = 0,
        login: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        keeps: bool = False,
    ) -> None:
        """`login`: user name and password. `tls`: of the server. `keeps`: connections, from one request to
        the next."""
        self.login = login
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, int] = {}
        self.refuses = False  # schemas of subjects, as one that does not fit the former ones
        self.asked = self.connections = 0
        self.instead: tuple[int, bytes, dict[str, str]] | None = (
            None  # of any answer: status, content, headers
        )
        self.byte_by_byte_s: float | None = None  # the pause before each byte of an answer
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler_of(self, keeps))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def fields(self) -> dict[str, str]:
        """Returns the fields of a connection to it."""
        login = {} if self.login is None else dict(zip(("user", "password"), self.login, strict=True))
        return {"url": self.url, **login}

    def asker(self, **changes: str) -> SchemaRegistry:
        """Returns what asks it."""
        return SchemaRegistry(SchemaRegistryConnection.model_validate({**self.fields, **changes}))

    def register(self, subject: str, schema: str) -> int:
        number = next((n for n, each in self.schemas.items() if each["schema"] == schema), None)
        if number is None:
            number = 100 + len(self.schemas)
            self.schemas[number] = {"schema": schema}
        self.subjects[subject] = number
        return number

    def __enter__(self) -> RegistryServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_of(registry: RegistryServer, keeps: bool) -> type[BaseHTTPRequestHandler]:
    """Returns what answers requests. `keeps`: connections, from one request to the next."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps else "HTTP/1.0"

        def setup(self) -> None:
            registry.connections += 1
            super().setup()

        def do_GET(self) -> None:
            registry.asked += 1
            if not self.is_let_in():
                return
            if self.path == "/subjects":
                self.answer(200, [*registry.subjects])
                return
            number = self.path.removeprefix("/schemas/ids/")
            found = registry.schemas.get(int(number)) if number.isdigit() else None
            if found is None:
                self.answer(404, {"error_code": 40403, "message": "Schema not found"})
            else:
                self.answer(200, found)

        def do_POST(self) -> None:
            registry.asked += 1
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.is_let_in():
                return
            if registry.refuses:
                self.answer(409, {"error_code": 409, "message": "The schema is incompatible"})
                return
            subject = self.path.removeprefix("/subjects/").removesuffix("/versions")
            self.answer(200, {"id": registry.register(subject, body["schema"])})

        def is_let_in(self) -> bool:
            if registry.login is not None:
                expected = base64.b64encode(":".join(registry.login).encode()).decode()
                if self.headers["Authorization"] != f"Basic {expected}":
                    self.answer(401, {"error_code": 401, "message": "Unauthorized"})
                    return False
            return True

        def answer(self, status: int, body: Any) -> None:
            content, headers = json.dumps(body).encode(), {}
            if registry.instead is not None:
                status, content, headers = registry.instead
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if registry.byte_by_byte_s is None:
                self.wfile.write(content)
                return
            with suppress(OSError):  # nobody waits any more
                for each in content:
                    sleep(registry.byte_by_byte_s)
                    self.wfile.write(bytes([each]))

        def log_message(self, *_: Any) -> None:
            return None

    return Handler
