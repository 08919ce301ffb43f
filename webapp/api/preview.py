from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.monitoring.preview import ElementPreview, Rows, preview_element
from webapp.pipelines.selectors import pipeline_named

router = Router(tags=["elements"])


class PreviewIn(Body):
    document: dict[str, Any] | None = None
    rows: Rows = "source"
    node: str | None = Field(default=None, max_length=60)


@router.post("/pipelines/{name}/elements/{id}/preview", response=ElementPreview)
def preview(request: HttpRequest, name: str, id: str, body: PreviewIn | None = None) -> ElementPreview:
    """Shows the first rows that come to an element and leave it, without deploying anything.

    `document` is the draft to look at; without it, the saved one. A node runs the element and all before it
    on the rows of its sources, or with `rows: "running"` on the newest rows of the streams that run. `node`
    chooses the node; without it, the draft or the load does. Nothing is written and nothing is kept. Needs
    the role editor.
    """
    asked = body or PreviewIn()
    pipeline = pipeline_named(name)
    document = pipeline.draft if asked.document is None else asked.document
    return preview_element(actor(request), pipeline, document, id, asked.rows, asked.node)
