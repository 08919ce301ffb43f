"""Answers of the API for who takes them compressed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

from tests.contract.web.conftest import PIPELINE, Caller
from webapp.placements.models import Deployment

Call = Callable[[str | None], Caller]
GZIP = {"Accept-Encoding": "gzip, deflate, br"}


def test_a_long_answer_is_compressed_for_who_takes_it(caller: Call) -> None:
    viewer = caller("viewer")
    plain = viewer.get("/operators")
    short = viewer.get("/operators", **GZIP)
    assert "Content-Encoding" not in plain.headers
    assert short.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in short.headers["Vary"]
    assert json.loads(gzip.decompress(short.content)) == plain.json()
    assert len(short.content) < len(plain.content) / 3


def test_a_draft_that_came_compressed_can_be_saved_with_its_etag(
    caller: Call, deployment: Deployment
) -> None:
    editor = caller("editor")
    path = f"/pipelines/{PIPELINE}"
    document = editor.get(path).json()["document"]
    document["metadata"]["description"] = "long " * 300
    saved = editor.put(path, {"document": document}, **{"If-Match": editor.get(path).headers["ETag"]})
    assert saved.status_code == 200
    short = editor.get(path, **GZIP)
    assert short.headers["Content-Encoding"] == "gzip"
    document["metadata"]["description"] = "short"
    again = editor.put(path, {"document": document}, **{"If-Match": short.headers["ETag"]})
    assert again.status_code == 200
