"""Static files: which of their forms is sent, and reading one for a client that may go away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from webapp.config.static_files import StaticFilesMiddleware, in_thread

SCRIPT = "/static/assets/editor-aB3_x-9Z.js"
FORMS = {None: b"as it was written", "gzip": b"as by gzip", "br": b"as br"}


@pytest.fixture
def static_files(tmp_path: Path, settings: Any) -> StaticFilesMiddleware:
    """Serves SCRIPT in all FORMS, and a page.svg that has no other form and no hash in its name."""
    script = tmp_path / "assets" / Path(SCRIPT).name
    script.parent.mkdir()
    for ending, encoding in (("", None), (".gz", "gzip"), (".br", "br")):
        script.with_name(script.name + ending).write_bytes(FORMS[encoding])
    (tmp_path / "page.svg").write_bytes(b"<svg/>")
    settings.STATICFILES_DIRS = [tmp_path]
    return StaticFilesMiddleware(lambda request: HttpResponse(status=404))


def ask(files: StaticFilesMiddleware, path: str, **headers: str) -> Any:
    return files(RequestFactory().get(path, headers=headers))


async def body(response: Any) -> bytes:
    return b"".join([part async for part in response])


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip, deflate, br, zstd", "br"), ("gzip, deflate", "gzip"), ("identity", None), ("", None)],
)
async def test_a_file_is_sent_in_the_smallest_form_that_the_browser_takes(
    static_files: StaticFilesMiddleware, accepted: str, encoding: str | None
) -> None:
    response = ask(static_files, SCRIPT, accept_encoding=accepted)
    assert await body(response) == FORMS[encoding]
    assert response.headers.get("Content-Encoding") == encoding
    assert response.headers["Content-Length"] == str(len(FORMS[encoding]))
    assert response.headers["Content-Type"].startswith("text/javascript")
    assert response.headers["Vary"] == "Accept-Encoding"
    assert response.headers["Cache-Control"] == "max-age=315360000, public, immutable"
    assert ask(static_files, SCRIPT, if_none_match=response.headers["ETag"]).status_code == 304


async def test_a_name_that_may_hold_other_content_tomorrow_is_asked_for_again(
    static_files: StaticFilesMiddleware,
) -> None:
    response = ask(static_files, "/static/page.svg", accept_encoding="br")
    assert await body(response) == b"<svg/>"
    assert "Content-Encoding" not in response.headers
    assert "immutable" not in response.headers["Cache-Control"]


def test_the_compressed_forms_have_no_address_of_their_own(static_files: StaticFilesMiddleware) -> None:
    assert ask(static_files, SCRIPT + ".br").status_code == 404


async def test_all_parts_come_and_it_is_closed() -> None:
    closed = threading.Event()

    def parts() -> Iterator[bytes]:
        try:
            yield from (b"one", b"two")
        finally:
            closed.set()

    assert [part async for part in in_thread(parts())] == [b"one", b"two"]
    assert await asyncio.to_thread(closed.wait, 10)


async def test_when_the_client_goes_away_it_is_closed_behind_the_read_that_is_under_way() -> None:
    reading, more, closed = threading.Event(), threading.Event(), threading.Event()

    def parts() -> Iterator[bytes]:
        try:
            reading.set()
            more.wait(10)
            yield b"late"
        finally:
            closed.set()

    async def read() -> None:
        async for _ in in_thread(parts()):
            pass

    request = asyncio.create_task(read())
    await asyncio.to_thread(reading.wait, 10)
    request.cancel()
    with suppress(asyncio.CancelledError):
        await request
    assert not closed.is_set()
    more.set()
    assert await asyncio.to_thread(closed.wait, 10)
