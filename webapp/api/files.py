from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import File, Router, Status
from ninja.files import UploadedFile

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.authentication import actor
from webapp.pipelines import files as data_files
from webapp.pipelines.models import DataFile

router = Router(tags=["files"])


@router.get("/files")
def list_files(request: HttpRequest) -> Any:
    rows = DataFile.objects.select_related("created_by").defer("head")
    return [data_files.file_json(row) for row in rows]


@router.post("/files", response={201: dict[str, Any]})
def upload(request: HttpRequest, file: File[UploadedFile]) -> Any:
    """Multipart, field `file`. Its `reference` is what a source takes as its path."""
    require(actor(request), Role.EDITOR, "upload files")
    return Status(201, data_files.file_json(data_files.upload(actor(request), file)))
