"""TLS with real servers: which certificates a connector accepts, and its message about the others."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from pipeline_runtime.connectors import http_browse, mqtt_topics, postgresql_tables
from pipeline_runtime.connectors.http_in import HttpIngester
from pipeline_runtime.connectors.sdk import ConnectorError, Place, Probed
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.operators.connections import TlsFields
from pipeline_runtime.operators.http import HttpConnection, HttpInParams, WebhookConnection
from tests.brokers import Broker
from tests.certificates import Authority, Pair
from tests.databases import Database
from tests.ports import free_ports
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

Probe = Callable[[Any, str], Probed]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def fields(authority: Authority, own: Pair) -> dict[str, Any]:
    """What a connection needs to be let in."""
    return {
        **{"host": "localhost", "tls": True, "ca": authority.certificate},
        **{"certificate": own.certificate, "private_key": own.key},
    }


def why(probe: Probe, connection: TlsFields, **changed: Any) -> str:
    with pytest.raises(ConnectorError) as caught:
        probe(connection.model_copy(update=changed), "")
    return str(caught.value)


def assert_told(probe: Probe, right: TlsFields, authority: Authority, *no_own: str) -> None:
    """`no_own`: one of these is said of a client without a certificate."""
    assert probe(right, "").words.startswith("Connected")
    assert "signed by an unknown authority" in why(probe, right, ca=Authority().certificate)
    assert "is for another host" in why(probe, right, host="127.0.0.1")
    old = authority.sign("fogline", days=-1)
    said = why(probe, right, certificate=old.certificate, private_key=old.key)
    assert "The own certificate of the connection has expired" in said
    said = why(probe, right, private_key=old.key)
    assert "do not belong together" in said
    said = why(probe, right, certificate=None, private_key=None)
    assert any(words in said for words in no_own), said
    assert "no certificate in PEM" in why(probe, right, ca="no certificate")


def broker(directory: Path, shown: Pair, authority: Authority) -> Broker:
    """Wants a certificate of each client."""
    directory.mkdir()
    certificate, key = shown.written(directory, "server")
    (directory / "ca.pem").write_text(authority.certificate)
    lines = (f"certfile {certificate}", f"keyfile {key}", f"cafile {directory / 'ca.pem'}")
    return Broker(directory, None, *lines, "require_certificate true")


def test_mqtt(authority: Authority, tmp_path: Path) -> None:
    known = fields(authority, authority.sign("fogline"))
    with broker(tmp_path / "right", authority.sign(), authority) as right:
        assert_told(mqtt_topics.probe, right.connection(**known), authority, "It may want an own certificate")
    with broker(tmp_path / "old", authority.sign(days=-1), authority) as old:
        assert "has expired. Its administrator" in why(mqtt_topics.probe, old.connection(**known))


def test_postgresql(authority: Authority) -> None:
    """With the password alone a client is let in without TLS, and needs its certificate with it."""
    known = fields(authority, authority.sign("fogline"))
    with Database() as database:
        right = authority.sign()
        database.speak_tls(right.certificate, right.key, authority.certificate)
        probe = postgresql_tables.probe
        assert_told(probe, database.connection(**known), authority, "wants one and there is none")
        old = authority.sign(days=-1)
        database.speak_tls(old.certificate, old.key)

        def has_expired() -> bool:
            try:
                probe(database.connection(**known), "")
            except ConnectorError as error:
                return "has expired. Its administrator" in str(error)
            return False  # it has not read the new certificate yet

        wait_until(has_expired, "the words")


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        return None


class _TlsServer(ThreadingHTTPServer):
    """A client that is refused by TLS is its own test's matter."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        return None


@contextmanager
def https_server(directory: Path, shown: Pair, authority: Authority) -> Iterator[int]:
    """Wants a certificate of each client. Yields its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*shown.written(directory, "server"))
    context.load_verify_locations(cadata=authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server = _TlsServer(("127.0.0.1", free_ports(1)[0]), _Hello)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_http_out(authority: Authority, tmp_path: Path) -> None:
    known = fields(authority, authority.sign("fogline"))
    with https_server(tmp_path, authority.sign(), authority) as port:
        right = HttpConnection.model_validate({**known, "port": port})
        # The reason may be lost with the connection.
        no_own = ("wants one and there is none", "has closed the connection")
        assert_told(http_browse.probe, right, authority, *no_own)
    with https_server(tmp_path, authority.sign(days=-1), authority) as port:
        old = HttpConnection.model_validate({**known, "port": port})
        assert "has expired. Its administrator" in why(http_browse.probe, old)


def webhook(port: int, own: Pair) -> HttpIngester:
    given = {"connection": "w", "port": port, "address": "127.0.0.1", "columns": [{"name": "n"}]}
    pair = {"certificate": own.certificate, "private_key": own.key}
    connection = WebhookConnection.model_validate({"token": "0123456789abcdef", **pair})
    return HttpIngester(Place("dep", "in", HttpInParams.model_validate(given), connection))


def test_http_in(authority: Authority) -> None:
    [port] = free_ports(1)
    running = RunningTrial(webhook(port, authority.sign()))
    wait_until(lambda: running.status.state == "connected", "the webhook to listen")
    headers = {"Authorization": "Bearer 0123456789abcdef"}
    url = f"https://localhost:{port}/"
    trusted = ssl.create_default_context(cadata=authority.certificate)
    with httpx.Client(verify=trusted, trust_env=False, headers=headers) as client:
        assert client.post(url, content=b'{"n": 1}').status_code == 202
    with httpx.Client(trust_env=False) as stranger, pytest.raises(httpx.ConnectError, match="certificate"):
        stranger.post(url)
    with httpx.Client(trust_env=False) as plain, pytest.raises(httpx.TransportError):
        plain.post(f"http://localhost:{port}/")
    assert running.stop().rows == [{"n": 1}]
    old = RunningTrial(webhook(port, authority.sign(days=-1)))
    wait_until(lambda: "The certificate of the webhook has expired" in old.status.why, "the words")
    old.stop()
