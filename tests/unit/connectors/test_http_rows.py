"""Answers of a server, and bodies of a webhook."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors.http_in import Refusal, records_of
from pipeline_runtime.connectors.http_out import Answer, why_not
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.operators.http import HttpConnection, HttpOutParams, WebhookConnection

NOW = datetime(2026, 3, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize("status", [408, 429, 500, 503, 504])
def test_what_may_pass_is_sent_again(status: int) -> None:
    why = why_not(Answer(status, "", {}), "s", NOW)
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
    why = why_not(Answer(503, "", {"retry-after": text}), "s", NOW)
    assert isinstance(why, ConnectorError)
    assert why.wait_s == seconds


@pytest.mark.parametrize("status", [400, 409, 410, 413, 422])
def test_another_refusal_is_quoted_in_the_dead_letter(status: int) -> None:
    assert why_not(Answer(status, "x" * 1000, {}), "s", NOW) == f"the server answers {status}: {'x' * 200}"


@pytest.mark.parametrize("path", ["rows", "//evil.example/", "/a b", "/a#b", "http://evil.example", "/\n"])
def test_a_path_leads_to_no_other_server(path: str) -> None:
    with pytest.raises(ValidationError):
        HttpOutParams.model_validate({"connection": "h", "path": path})


def test_secrets_that_no_header_can_have_are_refused_without_being_told() -> None:
    with pytest.raises(ValidationError) as caught:
        HttpConnection.model_validate({"host": "h", "token": "se\ncret"})
    assert "cret" not in str(caught.value.errors(include_input=False)[0]["msg"]).replace("secret", "")
    with pytest.raises(ValidationError):
        WebhookConnection.model_validate({"token": "short"})


def test_a_body_is_rows_or_nothing() -> None:
    assert [json.loads(each.value) for each in records_of(b'[{"a": "\\ud800"}]', "")] == [{"a": "\ud800"}]
    assert records_of(b"[]", "") == []
    for body in (b"1", b"null", b'"x"', b"[[]]", b"\xff", b"1" * 5_000):
        with pytest.raises(Refusal) as caught:
            records_of(body, "application/json")
        assert caught.value.status == 400
