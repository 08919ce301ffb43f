"""Tests which rows HTTP poll takes from an answer, and which redirections it follows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors.http_out import Answer
from pipeline_runtime.connectors.http_poll import ROWS_MAX, conditions_of, new_records, redirected, rows_of
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.operators.http import HttpConnection
from pipeline_runtime.operators.http_poll import HttpPollParams


def params(**fields: Any) -> HttpPollParams:
    return HttpPollParams.model_validate({"connection": "h", "columns": [{"name": "v"}], **fields})


def answer(body: Any, status: int = 200, **headers: str) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, content, headers)


def why(found: Answer, **fields: Any) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        rows_of(found, params(**fields), "the server")
    return caught.value


def test_rows_are_one_object_an_array_or_an_array_in_the_answer() -> None:
    assert rows_of(answer({"v": 1}), params(), "s") == [{"v": 1}]
    assert rows_of(answer([{"v": 1}, 2]), params(), "s") == [{"v": 1}, 2]
    assert rows_of(answer({"a": {"b": [{"v": 1}]}}), params(rows="a.b"), "s") == [{"v": 1}]
    assert rows_of(answer([]), params(), "s") == []


def test_what_is_wrong_with_an_answer_is_said_in_words() -> None:
    assert "with nothing like rows at a.b" in str(why(answer({"a": 1}), rows="a.b"))
    assert "with no rows" in str(why(answer(5)))
    assert "that is no JSON. It says: <html>" in str(why(answer(b"<html>")))
    assert "that is no JSON" in str(why(answer(b"[" * 100_000)))
    many = why(answer([0] * (ROWS_MAX + 1)))
    assert f"at most {ROWS_MAX}" in str(many)
    assert many.lasting
    assert "more than 5 MiB" in str(why(Answer(200, b"[", {}, whole=False)))


@pytest.mark.parametrize(
    ("status", "lasting", "wait_s"),
    [(401, True, 0), (404, True, 0), (418, True, 0), (429, False, 7), (503, False, 7)],
)
def test_an_answer_that_is_no_success_says_when_to_ask_again(status: int, lasting: bool, wait_s: int) -> None:
    headers = {"retry-after": "7"} if wait_s else {}
    found = why(answer("sorry", status, **headers))
    assert (found.lasting, found.wait_s) == (lasting, wait_s)
    assert f"answers {status} to GET /" in str(found)
    assert "sorry" in str(found)


def test_rows_of_the_last_answer_are_left_out() -> None:
    rows = [{"id": 1}, {"id": "1"}, {"id": [2]}, {"v": 3}, {"id": 1}, 5]
    records, ids = new_records(rows, params(id_field="id"), frozenset({"1"}))
    assert [json.loads(each.value) for each in records] == [{"id": "1"}, {"id": [2]}, {"v": 3}, 5]
    assert ids == {"1", '"1"', "[2]"}
    assert len(new_records(rows, params(), frozenset({"1"}))[0]) == len(rows)


def test_the_server_is_told_which_answer_is_known() -> None:
    changed, tag = "Mon, 30 Nov 2026 10:00:00 GMT", {"If-None-Match": '"a"'}
    given = {"etag": '"a"', "last-modified": changed}
    known = conditions_of({**given, "date": "Mon, 30 Nov 2026 10:00:02 GMT"})
    assert known == {**tag, "If-Modified-Since": changed}
    # It may have changed again within that second.
    assert conditions_of({**given, "date": "Mon, 30 Nov 2026 10:00:01 GMT"}) == tag
    assert conditions_of(given) == tag
    assert conditions_of({**given, "date": "Mon"}) == tag
    assert conditions_of({}) == {}


def test_a_redirection_is_followed_at_the_same_place_only() -> None:
    here = HttpConnection.model_validate({"host": "Plant.example", "port": 8080, "tls": False})

    def to(location: str) -> str:
        return redirected(answer("", 302, location=location), "/a/b?x=1", here)

    assert to("/c?y=2") == "/c?y=2"
    assert to("c") == "/a/c"
    assert to("http://plant.example:8080/d") == "/d"
    for elsewhere in (
        "http://plant.example:8081/d",
        "https://plant.example:8080/d",
        "http://plant.example/d",
        "http://other.example:8080/d",
        "//other.example:8080/d",
        "http://plant.example:x/",
        "http://user@other.example:8080/",
        "file:///etc/passwd",
        "http://[::1",
        "https://login.example/?token=private",
    ):
        with pytest.raises(ConnectorError, match="does not follow to another place") as caught:
            to(elsewhere)
        assert "private" not in str(caught.value)
    usual = HttpConnection.model_validate({"host": "plant.example", "port": 443})
    assert redirected(answer("", 301, location="https://plant.example/d"), "/", usual) == "/d"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"name": "Authorization", "value": "Bearer x"}, "is a secret"),
        ({"name": "X-API-Key", "value": "x"}, "is a secret"),
        ({"name": "x-authToken", "value": "x"}, "is a secret"),
        ({"name": "host", "value": "x"}, "Fogline itself sends"),
        ({"name": "X-A", "value": "a\r\nX-B: c"}, "printable"),
        ({"name": "X A", "value": "a"}, "should match pattern"),
    ],
)
def test_headers_that_belong_elsewhere_are_refused(header: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        params(headers=[header])
