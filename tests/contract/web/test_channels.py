"""Channels of alarms beside real receivers: a broker of MQTT by apprise, and mail servers with TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.certificates import Authority
from tests.ports import free_ports
from tests.receivers import mail_server
from tests.waiting import wait_until
from webapp.alarms import channels
from webapp.alarms.channels import NotSent, send

pytestmark = pytest.mark.integration


def clients() -> set[threading.Thread]:
    """Returns the threads of paho-mqtt."""
    return {each for each in threading.enumerate() if each.name.startswith("paho")}


def test_apprise_sends_by_mqtt_and_leaves_no_connection_behind(tmp_path: Path) -> None:
    got: list[tuple[str, bytes]] = []
    with Broker(tmp_path) as broker:
        client = broker.client(lambda topic, payload: got.append((topic, payload)), "alarms/#")
        before = clients()
        assert send(f"mqtt://127.0.0.1:{broker.port}/alarms/hall?qos=1", "1", "Hot", "Press is hot", {}) == ""
        wait_until(lambda: got, "the message")
        assert not clients() - before
        client.disconnect()
    [(topic, payload)] = got
    assert topic == "alarms/hall"
    assert b"Hot" in payload
    assert b"Press is hot" in payload
    with pytest.raises(NotSent, match="did not take the message"):
        send(f"mqtt://127.0.0.1:{broker.port}/alarms/hall?qos=1", "2", "Hot", "Press is hot", {})


def test_a_service_that_hangs_holds_its_channel_for_a_bounded_time_and_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "SERVICE_S", 0.3)
    monkeypatch.setattr(channels, "TIMEOUT_S", 2.0)
    [port] = free_ports(1)
    url = f"mqtt://127.0.0.1:{port}/alarms?qos=1"
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(NotSent, match="has not answered within 0 s") as caught:
            send(url, "1", "Hot", "Press is hot", {})
        assert caught.value.maybe
        with pytest.raises(NotSent, match="An earlier attempt still waits"):
            send(url, "1", "Hot", "Press is hot", {})
    wait_until(lambda: not channels._under_way[url][1].is_alive(), "the end of the attempt")


@pytest.mark.parametrize("mode", ["ssl", "starttls"])
def test_a_mail_goes_by_tls_and_login(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secure.load_cert_chain(*authority.sign("localhost").written(tmp_path, "server"))
    with mail_server(secure, starttls=mode == "starttls") as box:
        query = f"mode={mode}&from=fogline@example.org&to=bea@example.org"

        def mail(password: str) -> str:
            url = f"mailtos://ann:{password}@localhost:{box.port}?smtp=localhost&{query}"
            return send(url, "id-1", "Hot", "Press is hot", {})

        with pytest.raises(NotSent, match="certificate verify failed"):
            mail("right")
        known = tmp_path / "authority.pem"
        known.write_text(authority.certificate)
        monkeypatch.setenv("SSL_CERT_FILE", str(known))
        with pytest.raises(NotSent, match="refused the user or the password") as caught:
            mail("wrong-secret")
        assert "wrong-secret" not in str(caught.value)
        assert box.subjects == []
        assert mail("right") == ""
    assert box.subjects == ["Hot"]
    assert box.mails[0]["Message-ID"] == "<id-1@example.org>"
