"""Tests the client of schema registries: the registry answers, refuses, hangs, or is another server."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors import schema_registry
from pipeline_runtime.connectors.schema_registry import probe
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.formats.avro_schema import SCHEMA_CHARACTERS_MAX
from pipeline_runtime.formats.schema_registry import SchemaRegistryError
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection
from tests.certificates import Authority, Pair
from tests.schema_registry import RegistryServer
from tests.waiting import PATIENCE_S

SECRET = "hunter2-is-secret"
BIG = schema_registry.ANSWER_BYTES_MAX + 1


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
        assert "signed by an unknown authority" in why(url=url)
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
        (200, b"<html>" + b" " * BIG, "answers as no schema registry does"),
        (200, b'{"message": "Please log in"' + b" " * BIG, "answers as no schema registry does"),
    ],
)
def test_what_answers_instead_of_the_registry_is_waited_for(
    registry: RegistryServer, status: int, content: bytes, said: str
) -> None:
    registry.instead = status, content, {}
    with pytest.raises(SchemaRegistryError, match=said):
        registry.asker().schema(6)
    if len(content) < BIG:
        assert said in why(**registry.fields)


def test_an_answer_may_not_be_of_any_size(registry: RegistryServer) -> None:
    """No reader uses a schema that is so long, so its records are dead letters, as on any other replica."""
    packed = gzip.compress(json.dumps({"schema": '"string"', "more": "x" * 5_000_000}).encode())
    long = json.dumps({"schema": " " * 150_000 + '"string"'}).encode()
    for content, headers in (
        (b'{"references": [], "schema": "' + b" " * BIG + b'"}', {}),
        (packed, {"Content-Encoding": "gzip"}),
        (long, {}),
    ):
        registry.instead = 200, content, headers
        assert len(registry.asker().schema(6).text) == SCHEMA_CHARACTERS_MAX + 1


def test_the_kind_of_a_schema_is_one_short_line(registry: RegistryServer) -> None:
    registry.schemas[6] = {"schema": '"string"', "schemaType": None}
    registry.schemas[7] = {"schema": "x", "schemaType": "A\nB" + "x" * 5_000}
    asker = registry.asker()
    assert asker.schema(6).kind == "AVRO"
    assert asker.schema(7).kind == "A B" + "x" * (schema_registry.KIND_CHARACTERS_MAX - 3)


def test_questions_of_a_registry_share_a_connection() -> None:
    with RegistryServer(keeps=True) as registry:
        asker = registry.asker()
        for n in range(5):
            assert asker.schema(registry.register(f"t-{n}", f'"{n}"')).text == f'"{n}"'
        assert registry.asked == 5
        assert registry.connections < 5, "most often it is one"
        asker.close()


def test_a_registry_that_is_away_or_has_dropped_a_schema_takes_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_registry, "KEPT_S", 0.0)  # so it is asked each time
    with RegistryServer() as registry:
        number, asker = registry.register("t-value", '"string"'), registry.asker()
        found = asker.schema(number)
        registry.schemas.clear()
        assert asker.schema(number) == found
        registry.schemas[number] = {"schema": '"long"'}
        assert asker.schema(number).text == '"long"', "it was set up again"
        asked = registry.asked
    assert asked == 3
    assert asker.schema(number).text == '"long"'


def test_kept_schemas_wait_for_a_registry_that_is_away_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "KEPT_S", 0.0)  # so it is asked each time
    with RegistryServer(login=("ann", SECRET)) as registry:
        numbers = [registry.register(f"t-{n}", f'"{n}"') for n in range(3)]
        asker = registry.asker()
        found = [asker.schema(number) for number in numbers]
        asked = registry.asked
        registry.login = ("ann", "another")
        assert [asker.schema(number) for number in [*numbers, *numbers]] == found * 2
        assert registry.asked == asked + 1
        with pytest.raises(SchemaRegistryError, match="refuses the login"):
            asker.schema(6)
        registry.login = ("ann", SECRET)
        new = registry.register("t-new", '"new"')
        assert asker.schema(new).text == '"new"', "who has kept nothing asks"
        registry.schemas[numbers[0]] = {"schema": '"long"'}
        assert asker.schema(numbers[0]).text == '"long"', "it is back"


def test_of_long_schemas_only_a_few_are_kept(registry: RegistryServer) -> None:
    asker = registry.asker()
    numbers = [registry.register(f"t-{n}", " " * 90_000 + f'"{n}"') for n in range(12)]
    for number in numbers:
        asker.schema(number)
    asked = registry.asked
    asker.schema(numbers[-1])
    assert registry.asked == asked
    asker.schema(numbers[0])
    assert registry.asked == asked + 1


def test_who_has_waited_for_an_answer_that_does_not_come_does_not_wait_again(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "ANSWER_S", 3.0)
    registry.instead = 200, b" " * 1000, {}
    registry.byte_by_byte_s = 0.1
    asker, said = registry.asker(), []

    def ask(number: int) -> None:
        with pytest.raises(SchemaRegistryError) as refused:
            asker.schema(number)
        said.append(str(refused.value))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(said) == 6
    # A thread that begins late asks by itself.
    assert registry.asked < 6


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
    monkeypatch.setattr(schema_registry, "ANSWER_S", 3.0)
    registry.instead = 200, b" " * 1000, {}
    registry.byte_by_byte_s = 0.1
    with pytest.raises(SchemaRegistryError, match=r"does not answer within 3 s"):
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
        ({"url": "https://registry", "certificate": "x"}, "an own certificate needs its private key"),
        ({"url": "http://registry", "ca": "x"}, "certificates need an address that begins with https://"),
    ],
)
def test_a_connection_that_cannot_be_right_is_refused_in_words(fields: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SchemaRegistryConnection.model_validate(fields)
    [fault] = refused.value.errors(include_input=False, include_context=False)
    assert fault["type"] == "string_pattern_mismatch" or said in fault["msg"]
