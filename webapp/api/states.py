"""Pipelines that go to another Fogline with their state."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import File, Form, Router, Status
from ninja.files import UploadedFile

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.authentication import actor
from webapp.api.pipelines import etag
from webapp.api.streaming import in_thread
from webapp.monitoring.board import pipeline_json
from webapp.monitoring.schemas import Pipeline
from webapp.operations import state_export, state_import
from webapp.operations.schemas import StateReady
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.upload_handler import HashedFile

router = Router(tags=["pipelines"])


@router.post("/pipelines/{name}/state", response=StateReady)
def prepare(request: HttpRequest, name: str) -> StateReady:
    """Brings a running pipeline to one boundary, so that its state can be exported: sources pause first, each
    other element once it has read all of its rows, and each takes a checkpoint. Send it again until it is
    `ready`. The elements stay paused; resume them, or undeploy the pipeline once it runs elsewhere."""
    return state_export.prepare_state(actor(request), name)


@router.get("/pipelines/{name}/state")
def export(request: HttpRequest, name: str) -> StreamingHttpResponse:
    """Returns the pipeline that runs with its state and positions, as JSON lines with a hash at the end.
    Answers 409 unless it stands at one boundary."""
    lines = state_export.export_state(actor(request), name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.state"'}
    return StreamingHttpResponse(in_thread(lines), content_type="application/x-ndjson", headers=headers)


@router.delete("/pipelines/{name}/state", response={204: None})
def drop(request: HttpRequest, name: str) -> Status[None]:
    """Gives up the state that came with an imported pipeline and that no deployment has taken up."""
    require(actor(request), Role.EDITOR, "give up the state of pipelines")
    state_import.drop_state(actor(request), pipeline_named(name))
    return Status(204, None)


@router.post("/states", response={201: Pipeline})
def import_state(
    request: HttpRequest,
    response: HttpResponse,
    file: File[UploadedFile],
    title: Form[str] = "",
) -> Status[Pipeline]:
    """Imports a pipeline with its state as a draft. Its first deployment goes on from there.

    Multipart, with the text in the field `file`. The files that it reads have to be here, imported from the
    same originals in the same way, and topics of your own have to be the same ones. With `title`, the
    pipeline gets that title and a name made of it.
    """
    require(actor(request), Role.EDITOR, "import pipelines")
    pipeline = state_import.import_state(
        actor(request), cast(HashedFile, file), " ".join(title.split())[:120], {}
    )
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return Status(201, pipeline_json(pipeline))
