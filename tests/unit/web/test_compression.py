"""Which answers are compressed, and which are not because of what they hold."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from webapp.config.compression import ApiCompressionMiddleware

TEXT = b'{"name": "a"}' * 200
ELEMENTS = "/api/v1/pipelines/power/elements"


def answer(path: str, method: str = "GET", status: int = 200, text: bytes = TEXT, **headers: str) -> Any:
    def view(request: Any) -> HttpResponse:
        return HttpResponse(text, status=status, content_type="application/json")

    headers.setdefault("accept_encoding", "gzip, deflate, br")
    return ApiCompressionMiddleware(view)(RequestFactory().generic(method, path, headers=headers))


def test_what_the_api_tells_is_compressed_for_who_takes_it() -> None:
    response = answer(ELEMENTS)
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(response.content) == TEXT
    assert "Content-Encoding" not in answer(ELEMENTS, accept_encoding="br").headers


def test_a_long_answer_is_not_as_long_each_time() -> None:
    """So its length tells less about what is in it."""
    assert len({len(answer(ELEMENTS).content) for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("why", "asked"),
    [
        ("a page holds the CSRF token", {"path": "/pipelines/power"}),
        ("so does this", {"path": "/api/v1/me"}),
        ("records are the words of others", {"path": "/api/v1/pipelines/power/streams/numbers/peek"}),
        ("it may hold a new token", {"path": "/api/v1/tokens", "method": "POST"}),
        ("an error repeats the request", {"path": ELEMENTS, "status": 404}),
        ("it would not be shorter on its way", {"path": ELEMENTS, "text": TEXT[:1000]}),
    ],
)
def test_sent_as_it_is(why: str, asked: dict[str, Any]) -> None:
    assert "Content-Encoding" not in answer(**asked).headers, why
