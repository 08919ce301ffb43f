"""Answers of a server, and bodies of a webhook."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.x509.oid import NameOID
from pydantic import ValidationError

from pipeline_runtime.connectors.http_in import HttpIngester, Refusal, records_of
from pipeline_runtime.connectors.http_out import Answer, why_not
from pipeline_runtime.connectors.sdk import ConnectorError, Place
from pipeline_runtime.connectors.trial import trial_ingester
from pipeline_runtime.operators.http import HttpConnection, HttpInParams, HttpOutParams, WebhookConnection
from tests.ports import free_ports

NOW = datetime(2026, 3, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize("status", [408, 429, 500, 503, 504])
def test_what_may_pass_is_sent_again(status: int) -> None:
    why = why_not(Answer(status, b"", {}), "s", NOW)
    assert isinstance(why, ConnectorError)
    assert not why.lasting


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("99999999999", 300),
        ("Sun, 01 Mar 2026 06:00:30 GMT", 30),
        ("Sun, 01 Mar 2020 06:00:30 GMT", 0),
        ("soon", 0),
    ],
)
def test_a_retry_after_is_kept_to_within_bounds(text: str, seconds: float) -> None:
    why = why_not(Answer(503, b"", {"retry-after": text}), "s", NOW)
    assert isinstance(why, ConnectorError)
    assert why.wait_s == seconds


@pytest.mark.parametrize("status", [400, 409, 410, 413, 422])
def test_another_refusal_is_quoted_in_the_dead_letter(status: int) -> None:
    assert why_not(Answer(status, b"x" * 1000, {}), "s", NOW) == f"the server answers {status}: {'x' * 200}"


@pytest.mark.parametrize("path", ["rows", "//evil.example/", "/a b", "/a#b", "http://evil.example", "/\n"])
def test_a_path_leads_to_no_other_server(path: str) -> None:
    with pytest.raises(ValidationError):
        HttpOutParams.model_validate({"connection": "h", "path": path})


def test_secrets_that_no_header_can_have_are_refused_without_being_told() -> None:
    with pytest.raises(ValidationError) as caught:
        HttpConnection.model_validate({"host": "h", "token": "se\ncret"})
    assert "cret" not in str(caught.value.errors(include_input=False)[0]["msg"]).replace("secret", "")
    for fields in ({"token": "word "}, {"header": "X-Key", "header_value": " word"}):
        with pytest.raises(ValidationError, match="neither begin nor end with a space"):
            HttpConnection.model_validate({"host": "h", **fields})
    with pytest.raises(ValidationError):
        WebhookConnection.model_validate({"token": "short"})
    with pytest.raises(ValidationError, match="neither begins nor ends"):
        WebhookConnection.model_validate({"token": "0123456789abcdef\n"})


def test_a_webhook_asks_nobody_for_the_password_of_its_key() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "h")])
    key = ec.generate_private_key(ec.SECP256R1())
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)
    own = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end).sign(key, SHA256())
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    given = {
        "certificate": own.public_bytes(Encoding.PEM),
        "private_key": locked,
        "token": "0123456789abcdef",
    }
    params = {"connection": "w", "port": free_ports(1)[0], "address": "127.0.0.1", "columns": [{"name": "n"}]}
    place = Place("d", "e", HttpInParams.model_validate(params), WebhookConnection.model_validate(given))
    taken = trial_ingester(HttpIngester(place), rows=1, timeout_s=0.5)
    assert "or the key has a password" in taken.why


def test_a_body_is_rows_or_nothing() -> None:
    assert [json.loads(each.value) for each in records_of(b'[{"a": "\\ud800"}]', "")] == [{"a": "\ud800"}]
    assert records_of(b"[]", "") == []
    for body in (b"1", b"null", b'"x"', b"[[]]", b"\xff", b"1" * 5_000, b'{"a": 1e999}'):
        with pytest.raises(Refusal) as caught:
            records_of(body, "application/json")
        assert caught.value.status == 400
