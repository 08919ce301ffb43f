"""Pipelines as files: written and read, one or several."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from pipeline_runtime.model.document import DOCUMENT_BYTES_MAX, TITLE_MAX
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.pipelines import several
from webapp.pipelines.schemas import ImportedPipeline, ReadItem, ReadPipeline
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.written import read, written
from webapp.placements import undeployed

router = Router(tags=["pipelines"])


class Text(Body):
    text: str = Field(max_length=DOCUMENT_BYTES_MAX)
    files: dict[str, str] = Field({}, max_length=500)  # a name in the text -> the upload to take for it


class SeveralText(Body):
    text: str = Field(max_length=several.TEXT_CHARACTERS_MAX)
    files: dict[str, str] = Field({}, max_length=500)


class Chosen(Body):
    at: int = Field(ge=0)
    title: str = Field("", max_length=TITLE_MAX)
    replaces: int | None = None


class SeveralChosen(SeveralText):
    pipelines: list[Chosen] = Field(max_length=several.PIPELINES_MAX)


class Undo(Body):
    pipelines: list[ImportedPipeline] = Field(min_length=1, max_length=several.PIPELINES_MAX)


@router.get("/pipelines/{name}/export")
def export(request: HttpRequest, name: str) -> HttpResponse:
    """Returns the draft as YAML, with uploaded files by their names: `file:machines.csv`."""
    return _yaml(written([pipeline_named(name).draft]), name)


@router.get("/documents")
def export_several(request: HttpRequest, pipeline: Annotated[list[str], Query()]) -> HttpResponse:
    """Returns the drafts of several pipelines as one YAML stream, in this order."""
    return _yaml(several.export(pipeline), "pipelines")


def _yaml(text: str, name: str) -> HttpResponse:
    return HttpResponse(
        text,
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.yaml"'},
    )


@router.post("/documents/read", response=ReadPipeline)
def read_document(request: HttpRequest, body: Text) -> ReadPipeline:
    """Returns the pipeline in YAML or JSON text, as it was exported, with the uploads that are here in place
    of names of files. `missing` has the names with no upload or with several: send `files` to choose.
    Nothing is saved; create a pipeline with the document, or save it as a draft."""
    return read(actor(request), body.text, body.files)


@router.post("/documents/read-several", response=list[ReadItem])
def read_several(request: HttpRequest, body: SeveralText) -> list[ReadItem]:
    """Returns the pipelines of a YAML stream: each with why it cannot be imported, the files that it lacks
    here, and the pipeline of its name that is here. Nothing is saved."""
    return several.read_several(actor(request), body.text, body.files)


@router.post("/documents/import", response={201: list[ImportedPipeline]})
def import_several(request: HttpRequest, body: SeveralChosen) -> Status[list[ImportedPipeline]]:
    """Imports the chosen pipelines of a YAML stream: all, or none. `at` is the place in the stream, from 0.
    With `title`, the pipeline gets that title and a name made of it. With `replaces`, it replaces the draft
    of its name at that revision, which becomes a version; nothing that runs changes."""
    wanted: list[several.Choice] = [
        {"at": each.at, "title": " ".join(each.title.split()), "replaces": each.replaces}
        for each in body.pipelines
    ]
    return Status(201, several.import_several(actor(request), body.text, body.files, wanted))


@router.post("/documents/undo-import", response={204: None})
def undo_import(request: HttpRequest, body: Undo) -> Status[None]:
    """Undoes an import, given what it returned: deletes what it made and restores the drafts that it
    replaced. Answers 409, and undoes nothing, if one was changed or deployed meanwhile."""
    undeployed.undo_import(actor(request), body.pipelines)
    return Status(204, None)
