"""What is said of a schema registry that is reached, refuses, hangs, or is none."""

from __future__ import annotations

import gzip
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors import schema_registry
from pipeline_runtime.connectors.schema_registry import probe
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.formats.schema_registry import SchemaRegistryError
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection
from tests.certificates import Authority, Pair
from tests.schema_registry import RegistryServer

SECRET = "hunter2-is-secret"


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


def why(**fields: str) -> str:
    """Returns what Test connection says of a registry that cannot be used."""
    with pytest.raises(ConnectorError) as refused:
        probe(SchemaRegistryConnection.model_validate(fields), "")
    return str(refused.value)


def test_a_test_tells_how_many_subjects_there_are_and_shows_the_first() -> None:
    with RegistryServer(login=("ann", SECRET)) as locked:
        for n in range(7):
            locked.register(f"topic-{n}-value", '"string"')
        probed = probe(SchemaRegistryConnection.model_validate(locked.fields), "")
    assert probed.words == "Connected. The registry has 7 subjects."
    assert [row["subject"] for row in probed.rows] == [f"topic-{n}-value" for n in range(5)]


def test_a_wrong_password_is_told_in_words_that_hold_no_secret() -> None:
    with RegistryServer(login=("ann", SECRET)) as locked:
        said = why(url=locked.url, user="ann", password="not-" + SECRET)
        assert f"the schema registry {locked.url} refuses the login of the connection (401)" in said
        assert SECRET not in said
        with pytest.raises(SchemaRegistryError, match=r"refuses the login of the connection \(401\)"):
            locked.asker(user="bob").schema(6)


def test_a_registry_that_is_away_or_elsewhere_is_told_and_is_asked_again_when_it_is_back() -> None:
    with RegistryServer() as gone:
        port = int(gone.url.rpartition(":")[2])
    assert "Nobody listens at the schema registry" in why(url=gone.url)
    with RegistryServer(port) as back:
        number = back.register("t-value", '"string"')
        asker = gone.asker()
        assert asker.schema(number).text == '"string"'
    assert "is not known here" in why(url="http://no-such-host.invalid:8081")


def tls(shown: Pair, directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*shown.written(directory, "server"))
    return context


def test_a_certificate_of_an_own_authority_is_given_in_the_connection(tmp_path: Path) -> None:
    authority = Authority()
    with RegistryServer(tls=tls(authority.sign(), tmp_path)) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        right = SchemaRegistryConnection(url=url, ca=authority.certificate)
        assert probe(right, "").words == "Connected. The registry has 0 subjects."
        assert "signed by nobody who is known here" in why(url=url)
        wrong_host = url.replace("localhost", "127.0.0.1")
        assert "is for another host" in why(url=wrong_host, ca=authority.certificate)
    with RegistryServer(tls=tls(authority.sign(days=-1), tmp_path)) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        assert "has expired" in why(url=url, ca=authority.certificate)


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (404, b"no such page", "answers 404"),
        (404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}', "answers 404"),
        (301, b"", "answers 301"),
        (200, b"<html>Please log in</html>", "answers as no schema registry does"),
        (200, b'{"schema": {"type": "string"}}', "answers as no schema registry does"),
        (200, b"[" * 100_000, "answers as no schema registry does"),
    ],
)
def test_what_answers_instead_of_the_registry_is_waited_for(
    registry: RegistryServer, status: int, content: bytes, said: str
) -> None:
    registry.instead = status, content, {}
    with pytest.raises(SchemaRegistryError, match=said):
        registry.asker().schema(6)
    assert said in why(**registry.fields)


def test_an_answer_may_not_be_of_any_size(registry: RegistryServer) -> None:
    registry.instead = 200, b" " * (schema_registry.ANSWER_BYTES_MAX + 1), {}
    with pytest.raises(SchemaRegistryError, match="answers too much"):
        registry.asker().schema(6)
    packed = gzip.compress(json.dumps({"schema": '"string"', "more": "x" * 5_000_000}).encode())
    registry.instead = 200, packed, {"Content-Encoding": "gzip"}
    with pytest.raises(SchemaRegistryError, match="answers too much"):
        registry.asker().schema(6)


def test_an_answer_may_not_be_packed_twice(registry: RegistryServer) -> None:
    registry.instead = 200, gzip.compress(gzip.compress(b"{}")), {"Content-Encoding": "gzip, gzip"}
    with pytest.raises(SchemaRegistryError, match="packs its answer twice"):
        registry.asker().schema(6)


@pytest.mark.parametrize("number", ["../../subjects/orders/versions/latest", 1 << 31, -1, True])
def test_what_is_no_number_of_a_schema_is_not_asked_for(registry: RegistryServer, number: Any) -> None:
    registry.instead = 200, b'{"schema": "\\"string\\""}', {}
    with pytest.raises(SchemaRegistryError, match="has no schema"):
        registry.asker().schema(number)


@pytest.mark.parametrize("url", ["http://999.1.1.1", "http://127.0.0.1:99999", "http://registry..plant"])
def test_an_address_that_cannot_be_is_told_in_words(url: str) -> None:
    connection = SchemaRegistryConnection(url=url)
    with pytest.raises(ConnectorError, match=r"is no address|No name server|unknown|Nobody listens"):
        probe(connection, "")


def test_a_registry_has_one_time_for_its_whole_answer(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "ANSWER_S", 0.5)
    registry.instead = 200, b" " * 1000, {}
    registry.byte_by_byte_s = 0.1
    with pytest.raises(SchemaRegistryError, match=r"does not answer within 0.5 s"):
        registry.asker().schema(6)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "http://ann:secret@registry.plant"}, "without a user name"),
        ({"url": "file:///etc/passwd"}, "an address of a schema registry is such as"),
        ({"url": "http://registry/?token=x"}, "an address of a schema registry is such as"),
        ({"url": "http://registry", "user": "ann"}, "a login needs a user name and a password"),
        (
            {"url": "http://registry", "user": "ann", "password": SECRET, "token": SECRET},
            "give a token, or a user name and a password",
        ),
        ({"url": "http://registry", "token": SECRET + "\n"}, "a token has no line breaks"),
    ],
)
def test_a_connection_that_cannot_be_right_is_refused_in_words(fields: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SchemaRegistryConnection.model_validate(fields)
    [fault] = refused.value.errors(include_input=False, include_context=False)
    assert fault["type"] == "string_pattern_mismatch" or said in fault["msg"]
