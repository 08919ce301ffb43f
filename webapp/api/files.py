from __future__ import annotations

from django.http import HttpRequest
from ninja import File, Router, Status
from ninja.files import UploadedFile
from pydantic import Field

from pipeline_runtime.operators.columns import ColumnType, Decimal, Delimiter
from pipeline_runtime.operators.recording import COLUMNS_MAX
from pipeline_runtime.operators.table_preview import TablePreview
from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.pipelines import files as data_files
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import StoredFile

router = Router(tags=["files"])


class Look(Body):
    """What is known about the format of a file. Fields that are left out are detected."""

    path: str = Field(max_length=200, description="upload:<id> or demo:<name>")
    delimiter: Delimiter | None = None
    decimal: Decimal | None = None
    header: bool | None = None
    columns: list[ColumnType] | None = Field(default=None, max_length=COLUMNS_MAX)
    time_column: str | None = Field(default=None, max_length=120)
    time_format: str | None = Field(default=None, max_length=120)


@router.get("/files", response=list[StoredFile])
def list_files(request: HttpRequest) -> list[StoredFile]:
    rows = DataFile.objects.select_related("created_by").defer("head")
    return [data_files.file_json(row) for row in rows]


@router.post("/files", response={201: StoredFile})
def upload(request: HttpRequest, file: File[UploadedFile]) -> Status[StoredFile]:
    """Uploads a file as multipart, in the field `file`. A source takes its `reference` as its path."""
    require(actor(request), Role.EDITOR, "upload files")
    return Status(201, data_files.file_json(data_files.upload(actor(request), file)))


@router.post("/files/preview", response=TablePreview)
def preview(request: HttpRequest, body: Look) -> TablePreview:
    """Returns the first rows of a data file, the parts that could not be read, and which column can be their
    time. Changes nothing, and reads only the first 64 KiB."""
    known = {name: getattr(body, name) for name in body.model_fields_set - {"path"}}
    return data_files.look(body.path, known)
