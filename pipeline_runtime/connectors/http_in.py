"""Takes rows that other programs send by HTTP (uvicorn, starlette). It answers 202 when the rows are
durable."""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import uvicorn
from cryptography import x509
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.intake import RECORD_BYTES_MAX
from pipeline_runtime.connectors.sdk import (
    ConnectorError,
    Ingester,
    Intake,
    Probed,
    Record,
)
from pipeline_runtime.operators.http import HttpInParams, WebhookConnection

BODY_BYTES_MAX = 5 << 20
ROWS_MAX = 5_000
BODY_S = 10.0
HEAD_S = 10.0
"""A connection on which no request has begun for so long is closed, so that others get its place."""
DURABLE_S = 10.0
"""A row that is not durable by then gets 503."""
AT_ONCE = 100
"""How many requests may be open."""
_GONE = {
    socket.TCP_KEEPIDLE: 5,
    socket.TCP_KEEPINTVL: 2,
    # In ms: for a silent sender too, and then TCP_KEEPCNT counts for nothing.
    socket.TCP_USER_TIMEOUT: 11_000,
}
_LOOK_S = 0.2
_NDJSON = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})


class Refusal(Exception):
    """Nothing of the request was taken. The words are for the sender."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class _Server(uvicorn.Server):
    """Counts how often its loop has run, which is ten times a second."""

    ticks = 0

    async def on_tick(self, counter: int) -> bool:
        self.ticks += 1
        return await super().on_tick(counter)


class HttpIngester(Ingester[HttpInParams, WebhookConnection]):
    """The server runs in a thread of its own, with an event loop of its own."""

    _server: _Server | None = None

    def beats(self) -> int | None:
        server = self._server
        return None if server is None else server.ticks or None

    @property
    def system_waits(self) -> bool:
        return True

    def run(self, intake: Intake, stop: threading.Event) -> None:
        params = self.place.params
        with tempfile.TemporaryDirectory() as directory:
            files = _tls_files(self.place.connection, Path(directory))
            listening = _listening(params.address, params.port)
            webhook = Webhook(params.path, self.place.connection.token, intake)
            config = uvicorn.Config(
                webhook,
                http=_Protocol,
                log_config=None,
                access_log=False,
                lifespan="off",
                limit_concurrency=AT_ONCE,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=1,
                server_header=False,
                proxy_headers=False,
                ws="none",
                **files,
            )
            try:
                config.load()
                end = _end_of(self.place.connection)
            except (ssl.SSLError, ValueError) as error:
                listening.close()
                raise ConnectorError(
                    "The certificate of the webhook and its private key do not belong together, or are not "
                    "in PEM, or the key has a password.",
                    lasting=True,
                ) from error
            self._server = _Server(config)
            try:
                _serve(self._server, listening, intake, stop, end)
            finally:
                self._server = None
                webhook.close()


def _serve(
    server: _Server, listening: socket.socket, intake: Intake, stop: threading.Event, end: datetime
) -> None:
    """`end`: until when its certificate is valid."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="webhook", daemon=True)
    thread.start()
    try:
        while not stop.wait(_LOOK_S):
            if not thread.is_alive():
                raise ConnectorError("The webhook has ended by itself.")
            if server.started and datetime.now(UTC) > end:
                intake.failing(
                    "The certificate of the webhook has expired: a sender that checks it sends nothing. Give "
                    "the connection a new one."
                )
            elif server.started:
                intake.connected()
    finally:
        server.should_exit = True
        thread.join(1.5)
        server.force_exit = True
        thread.join(0.3)
        listening.close()


def _listening(address: str, port: int) -> socket.socket:
    try:
        listening = socket.create_server(
            (address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=AT_ONCE
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConnectorError(
                f"Port {port} of this node is taken by another program or element. Choose another."
            ) from error
        if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
            raise ConnectorError(
                f"{address} is no address of this node. 0.0.0.0 is all of them.", lasting=True
            ) from error
        raise in_words(error, f"port {port} of this node") from error
    # Each connection inherits them. One whose sender is gone without a word ends, and leaves its place.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _GONE.items():
        listening.setsockopt(socket.IPPROTO_TCP, option, value)
    return listening


def _tls_files(connection: WebhookConnection, directory: Path) -> dict[str, Any]:
    """Returns uvicorn's options, with files: ssl reads nothing else."""
    if connection.certificate is None or connection.private_key is None:
        return {}
    paths = []
    for name, text in (("certificate", connection.certificate), ("key", connection.private_key)):
        path = directory / f"{name}.pem"
        path.touch(0o600)
        path.write_text(text.strip() + "\n")
        paths.append(str(path))
    # With a password, whichever, OpenSSL asks no terminal for that of a key which has one.
    return {"ssl_certfile": paths[0], "ssl_keyfile": paths[1], "ssl_keyfile_password": "none"}


def _end_of(connection: WebhookConnection) -> datetime:
    """Returns until when the certificate is valid."""
    if connection.certificate is None:
        return datetime.max.replace(tzinfo=UTC)
    return x509.load_pem_x509_certificate(connection.certificate.encode()).not_valid_after_utc


class _Protocol(HttpToolsProtocol):
    """A connection that does not stay open without requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._look, self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self, before: object) -> None:
        """`before`: the request that was the newest when it was looked last."""
        open_one = self.cycle is not None and not self.cycle.response_complete
        if self.cycle is before and not open_one:
            self.transport.close()
        else:
            self._timer = self.loop.call_later(HEAD_S, self._look, self.cycle)


class Webhook:
    """The application: one path, one method."""

    def __init__(self, path: str, token: str, intake: Intake) -> None:
        self._path, self._token, self._intake = path.partition("?")[0], token.encode(), intake
        # Those that wait must not take the threads from those that read.
        self._waiting = ThreadPoolExecutor(AT_ONCE, "webhook")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = JSONResponse({"error": str(refusal)}, refusal.status, _headers(refusal.status))
        except ClientDisconnect:
            return
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if not self._is_known(request.headers.get("authorization", "")):
            raise Refusal(401, "Send the header Authorization: Bearer, with the token of this webhook.")
        if request.url.path != self._path:
            raise Refusal(404, f"Nothing is here. Rows are sent to {self._path}.")
        if request.method != "POST":
            raise Refusal(405, "Rows are sent by POST.")
        body = await _body(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        # Reading and waiting would hold the other requests.
        records = await asyncio.to_thread(records_of, body, kind)
        if records and not await self._durable(records):
            raise Refusal(503, "The rows are not safe yet. Send them again; they may come twice then.")
        return JSONResponse({"rows": len(records)}, 202)

    async def _durable(self, records: list[Record]) -> bool:
        loop, put = asyncio.get_running_loop(), self._intake.put_durably
        return await loop.run_in_executor(self._waiting, put, records, DURABLE_S)

    def close(self) -> None:
        self._waiting.shutdown(wait=False)

    def _is_known(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        # latin-1 is what a header is read as.
        same = hmac.compare_digest(token.strip().encode("latin-1", "replace"), self._token)
        return same and scheme.lower() == "bearer"


def _headers(status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    # What is left of a body that was not read must not become the next request.
    return {"Retry-After": "1"} if status == 503 else {"Connection": "close"}


async def _body(request: Request) -> bytes:
    """Raises Refusal."""
    too_much = Refusal(413, f"A request has at most {BODY_BYTES_MAX} bytes. Send fewer rows at a time.")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:20]) > BODY_BYTES_MAX:
        raise too_much
    found, until_s = bytearray(), monotonic() + BODY_S
    parts: Callable[[], Awaitable[bytes]] = request.stream().__anext__
    try:
        while True:
            found += await asyncio.wait_for(parts(), max(0.0, until_s - monotonic()))
            if len(found) > BODY_BYTES_MAX:
                raise too_much
    except StopAsyncIteration:
        return bytes(found)
    except TimeoutError as error:
        raise Refusal(408, f"The request has not arrived within {BODY_S:.0f} s.") from error


def records_of(body: bytes, kind: str) -> list[Record]:
    """Returns a record for each row. `kind`: the content type. Raises Refusal: then no row counts."""
    texts = [line for line in body.split(b"\n") if line.strip()] if kind in _NDJSON else None
    if texts is None:
        found = _json(body, "The body")
        rows = found if isinstance(found, list) else [found]
    else:
        _few(len(texts))
        rows = [_json(text, f"Line {place}") for place, text in enumerate(texts, 1)]
    _few(len(rows))
    return [_record(row, place) for place, row in enumerate(rows, 1)]


def _few(rows: int) -> None:
    if rows > ROWS_MAX:
        raise Refusal(413, f"A request has at most {ROWS_MAX} rows, and this one has {rows}.")


def _json(text: bytes, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"{what} is no JSON: {str(error)[:200]}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _record(row: Any, place: int) -> Record:
    if not isinstance(row, dict):
        raise Refusal(400, f"Row {place} is no JSON object.")
    try:
        value = json.dumps(row, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:  # 1e999 is read as infinite
        raise Refusal(400, f"Row {place} has a number that is too large, or is nested too deep.") from error
    if len(value) > RECORD_BYTES_MAX:
        raise Refusal(413, f"Row {place} has {len(value)} bytes; at most {RECORD_BYTES_MAX} are taken.")
    return Record(value)


def probe(connection: WebhookConnection, path: str) -> Probed:
    """Says what a sender has to do: there is nothing to connect to."""
    openly = "" if connection.certificate else " Without a certificate the token is sent openly."
    return Probed(f"There is nothing to connect to: senders connect to the element's node.{openly}")
