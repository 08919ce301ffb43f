"""Routes about what an element of a draft makes of some rows."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.monitoring.preview import ElementPreview, PinnedRows, Rows
from webapp.monitoring.samples import (
    ExpectedCheck,
    check_expected,
    expect_rows,
    pin_rows,
    preview_element,
    unpin_rows,
)
from webapp.pipelines.selectors import pipeline_named

router = Router(tags=["elements"])


class DraftIn(Body):
    document: dict[str, Any] | None = None


class ExpectIn(DraftIn):
    node: str | None = Field(default=None, max_length=60)


class PreviewIn(ExpectIn):
    rows: Rows = "source"


class PinIn(ExpectIn):
    rows: Literal["source", "running"] = "source"


@router.post("/pipelines/{name}/elements/{id}/preview", response=ElementPreview)
def preview(request: HttpRequest, name: str, id: str, body: PreviewIn | None = None) -> ElementPreview:
    """Shows the first rows that come to an element and leave it, without deploying anything.

    `document` is the draft to look at; without it, the saved one. A node runs the element and all before it
    on the rows of its sources, or with `rows: "running"` on the newest rows of the streams that run. With
    `rows: "pinned"` it runs the element on the rows that are pinned to it, and says how its output differs
    from what is expected. `node` chooses the node; without it, the draft or the load does. Nothing is written
    and nothing is kept. Needs the role editor.
    """
    sent = body or PreviewIn()
    pipeline = pipeline_named(name)
    document = pipeline.draft if sent.document is None else sent.document
    return preview_element(actor(request), pipeline, document, id, sent.rows, sent.node)


@router.put("/pipelines/{name}/elements/{id}/pinned-rows", response=PinnedRows)
def pin(request: HttpRequest, name: str, id: str, body: PinIn | None = None) -> PinnedRows:
    """Pins the first rows that come to an element: at most 200 of each input, 256 KiB in all.

    They are kept with the draft. What was expected of other rows is forgotten. Needs the role editor.
    """
    sent = body or PinIn()
    pipeline = pipeline_named(name)
    document = pipeline.draft if sent.document is None else sent.document
    return pin_rows(actor(request), pipeline, document, id, sent.rows, sent.node)


@router.delete("/pipelines/{name}/elements/{id}/pinned-rows", response={204: None})
def unpin(request: HttpRequest, name: str, id: str) -> Status[None]:
    """Forgets the rows that are pinned to an element, and what is expected of them. Needs the role editor."""
    unpin_rows(actor(request), pipeline_named(name), id)
    return Status(204, None)


@router.put("/pipelines/{name}/elements/{id}/expected-rows", response=PinnedRows)
def expect(request: HttpRequest, name: str, id: str, body: ExpectIn | None = None) -> PinnedRows:
    """Expects from now on what an element makes of its pinned rows now. Needs the role editor."""
    sent = body or ExpectIn()
    pipeline = pipeline_named(name)
    document = pipeline.draft if sent.document is None else sent.document
    return expect_rows(actor(request), pipeline, document, id, sent.node)


@router.post("/pipelines/{name}/check-expected", response=list[ExpectedCheck])
def check(request: HttpRequest, name: str, body: DraftIn | None = None) -> list[ExpectedCheck]:
    """Says for each element of which rows are expected how what it makes of its pinned rows differs.

    `document` is what is to be deployed; without it, the draft. Needs the role editor.
    """
    pipeline = pipeline_named(name)
    sent = body or DraftIn()
    document = pipeline.draft if sent.document is None else sent.document
    return check_expected(actor(request), pipeline, document)
