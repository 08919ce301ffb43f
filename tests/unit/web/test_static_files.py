"""Static files: which of their forms is sent, and what browsers may keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from servestatic.middleware import ServeStaticMiddleware

SCRIPT = "/static/assets/editor-aB3_x-9Z.js"
FORMS = {None: b"as it was written", "gzip": b"as by gzip", "br": b"as br"}


@pytest.fixture
def static_files(tmp_path: Path, settings: Any) -> ServeStaticMiddleware:
    """Serves SCRIPT in all FORMS, and a page.svg that has no other form and no hash in its name."""
    script = tmp_path / "assets" / Path(SCRIPT).name
    script.parent.mkdir()
    for ending, encoding in (("", None), (".gz", "gzip"), (".br", "br")):
        script.with_name(script.name + ending).write_bytes(FORMS[encoding])
    (tmp_path / "page.svg").write_bytes(b"<svg/>")
    settings.STATICFILES_DIRS = [tmp_path]
    return ServeStaticMiddleware(not_found)


async def not_found(_: HttpRequest) -> HttpResponse:
    return HttpResponse(status=404)


async def ask(files: ServeStaticMiddleware, path: str, **headers: str) -> Any:
    return await files(RequestFactory().get(path, headers=headers))


async def body(response: Any) -> bytes:
    return b"".join([part async for part in response])


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip, deflate, br, zstd", "br"), ("gzip, deflate", "gzip"), ("identity", None), ("", None)],
)
async def test_a_file_is_sent_in_the_smallest_form_that_the_browser_takes(
    static_files: ServeStaticMiddleware, accepted: str, encoding: str | None
) -> None:
    response = await ask(static_files, SCRIPT, accept_encoding=accepted)
    assert await body(response) == FORMS[encoding]
    assert response.headers.get("Content-Encoding") == encoding
    assert response.headers["Content-Length"] == str(len(FORMS[encoding]))
    assert response.headers["Content-Type"].startswith("text/javascript")
    assert response.headers["Vary"] == "Accept-Encoding"
    assert response.headers["Cache-Control"] == "max-age=315360000, public, immutable"
    again = await ask(static_files, SCRIPT, if_none_match=response.headers["ETag"])
    assert again.status_code == 304


async def test_a_name_that_may_hold_other_content_tomorrow_is_asked_for_again(
    static_files: ServeStaticMiddleware,
) -> None:
    response = await ask(static_files, "/static/page.svg", accept_encoding="br")
    assert await body(response) == b"<svg/>"
    assert "Content-Encoding" not in response.headers
    assert "immutable" not in response.headers["Cache-Control"]


async def test_the_compressed_forms_have_no_address_of_their_own(static_files: ServeStaticMiddleware) -> None:
    assert (await ask(static_files, SCRIPT + ".br")).status_code == 404
