from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja import File, Form, Router, Status
from ninja.files import UploadedFile
from pydantic import Field, JsonValue

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.imports.reading import COLUMNS_MAX, Reading, Report
from webapp.pipelines import files as data_files, imports
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import FileDetail, FilePreview, StoredFile
from webapp.pipelines.upload_handler import HashedFile
from webapp.placements import file_uses
from webapp.placements.file_uses import uses_of_files

router = Router(tags=["files"])


class ImportIn(Body):
    """How to import a file. Without a reading, it is read as it was detected, with these answers. A reading
    is complete: the answers say only what is not to be asked again."""

    reading: Reading | None = None
    answers: dict[str, int] = Field(
        default={}, max_length=COLUMNS_MAX, description="question's id -> number of the choice, from 0"
    )


class Again(Body):
    reading: Reading


class PreviewIn(Body):
    """What to show of a file: as this reading has it, or as it is detected around the places in `fixed`."""

    reading: Reading | None = None
    fixed: dict[str, JsonValue] = Field(
        default={}, max_length=COLUMNS_MAX, description="place in the reading, such as `delimiter` -> value"
    )


@router.get("/files", response=list[StoredFile])
def list_files(request: HttpRequest) -> list[StoredFile]:
    """Lists the uploaded files, with who uses them."""
    rows = DataFile.objects.select_related("created_by")
    uses = uses_of_files()
    few = rows.defer("description", "sample", "detection", "reading", "report")
    return [data_files.file_json(row, uses.get(row.pk, [])) for row in few]


@router.post("/files", response={201: StoredFile})
def upload(request: HttpRequest, file: File[UploadedFile], confirm: Form[bool] = False) -> Status[StoredFile]:
    """Uploads a file as multipart, in the field `file`. A source takes its `reference` as its path.

    It is looked at, and imported by itself if it can be read in one way only. With `confirm`, it waits until
    somebody orders its import.
    """
    require(actor(request), Role.EDITOR, "upload files")
    row = data_files.upload(actor(request), cast(HashedFile, file), confirm=confirm)
    return Status(201, data_files.file_json(row, []))


@router.get("/files/{id}", response=FileDetail)
def get_file(request: HttpRequest, id: str) -> FileDetail:
    """Returns one file with how it is read, what a person has to decide, and what became of it."""
    return _detail(imports.data_file(id))


@router.get("/files/{id}/report", response=Report)
def report(request: HttpRequest, id: str) -> Report:
    """Returns what the import has read of each column, and what it could not read."""
    return imports.report_of(id)


@router.post("/files/{id}/preview", response=FilePreview)
def preview_file(request: HttpRequest, id: str, body: PreviewIn | None = None) -> FilePreview:
    """Returns the first rows as they lie and as they are read. Changes nothing."""
    wanted = body or PreviewIn()
    return imports.preview_of(id, wanted.reading, wanted.fixed)


@router.post("/files/{id}/import", response=FileDetail)
def import_file(request: HttpRequest, id: str, body: ImportIn | None = None) -> FileDetail:
    """Orders the import of a file that waits for it, was cancelled or failed. Answers 409 if it is imported
    already, and 422 while a question has no answer."""
    wanted = body or ImportIn()
    return _detail(imports.import_file(actor(request), id, wanted.reading, wanted.answers))


@router.post("/files/{id}/cancel", response=FileDetail)
def cancel(request: HttpRequest, id: str) -> FileDetail:
    """Stops what is under way for the file. It stays, and can be imported later."""
    return _detail(imports.cancel(actor(request), id))


@router.post("/files/{id}/again", response={201: FileDetail})
def import_again(request: HttpRequest, id: str, body: Again) -> Status[FileDetail]:
    """Imports the same bytes with another reading. That makes another file: what reads this one goes on."""
    return Status(201, _detail(imports.import_again(actor(request), id, body.reading)))


@router.delete("/files/{id}", response={204: None})
def delete_file(request: HttpRequest, id: str, force: bool = False) -> Status[None]:
    """Deletes a file. Answers 409 with who uses it. With `force`, drafts and versions that name it do not
    keep it; what runs always does."""
    file_uses.delete_file(actor(request), id, force=force)
    return Status(204, None)


def _detail(file: DataFile) -> FileDetail:
    return data_files.file_detail(file, uses_of_files(file.pk).get(file.pk, []))
