"""A real mail server and a real receiver of webhooks, which keep what they are sent."""

from __future__ import annotations

import email
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from pipeline_runtime.model.plain_data import read_json
from tests.ports import free_block


class Mailbox:
    """What a mail server was sent. `refuse` is what it answers instead of taking it."""

    def __init__(self) -> None:
        self.port = 0
        self.mails: list[Message] = []
        self.refuse: str | None = None

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        if self.refuse is not None:
            return self.refuse
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(email.message_from_bytes(content))
        return "250 OK"

    @property
    def subjects(self) -> list[str]:
        return [str(mail["Subject"]).replace("\n", "") for mail in self.mails]


@contextmanager
def mail_server(secure: ssl.SSLContext | None = None, *, starttls: bool = False) -> Iterator[Mailbox]:
    """`secure`: it speaks TLS, at once or by STARTTLS, and takes mail of the user "ann" with the password
    "right" alone."""
    box = Mailbox()
    box.port = free_block(1)
    options: dict[str, Any] = {}
    if secure is not None:
        options = {
            "authenticator": _known,
            "auth_required": True,
            "auth_require_tls": starttls,  # what is TLS from the begin does not count
            "tls_context" if starttls else "ssl_context": secure,
            "require_starttls": starttls,
        }
    controller = Controller(box, hostname="127.0.0.1", port=box.port, **options)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


class Hooks:
    """What a receiver of webhooks was sent. `answers` has the statuses of the next answers: 0 closes the
    connection instead, after the request was taken. Then it answers 200."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.taken: list[str] = []  # the ids of requests that were not refused
        self.answers: list[int] = []

    @property
    def keys(self) -> list[str]:
        return [headers["idempotency-key"] for headers, _ in self.requests]


def _known(_server: Any, _session: Any, _envelope: Envelope, _mechanism: str, login: Any) -> AuthResult:
    # Not handled here: the server itself answers.
    return AuthResult(success=(login.login, login.password) == (b"ann", b"right"), handled=False)


@contextmanager
def webhook_receiver() -> Iterator[Hooks]:
    hooks = Hooks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            hooks.requests.append(
                ({name.lower(): value for name, value in self.headers.items()}, read_json(body.decode()))
            )
            status = hooks.answers.pop(0) if hooks.answers else 200
            if status in (0, 200):
                hooks.taken.append(self.headers["Idempotency-Key"])
            if status == 0:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hooks.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hooks
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
