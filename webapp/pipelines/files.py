"""Stores uploaded data files. The chunk service holds the bytes, and the database holds their hash and
name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from pipeline_runtime.operators.onnx_file import MODEL_BYTES_MAX, ModelUnreadable, described
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.backends.chunk_store import put_file
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import FileDetail, FileState, FileUse, StoredFile
from webapp.pipelines.upload_handler import HashedFile
from webapp.problems import Invalid, TooLarge

NAME_CHARACTERS_MAX = 120


def upload(actor: User, file: HashedFile, *, confirm: bool = False) -> DataFile:
    """Stores one data file. Control then looks at it. Equal bytes are stored only once.

    With `confirm`, the import begins only after a person has confirmed how the file is read.
    """
    require(actor, Role.EDITOR, "upload files")
    size = file.size or 0
    if size > settings.UPLOAD_BYTES_MAX:
        raise too_large()
    if size == 0:
        raise Invalid("The file is empty.", safe="Nothing was stored.", next="Choose another file.")
    name = safe_name(file.name or "")
    description = _described(file, size) if is_model(name) else b""
    put_file(file.sha256, _parts(file))
    with transaction.atomic():
        row = DataFile.objects.create(
            name=name,
            sha256=file.sha256,
            size=size,
            state=DataFile.State.MODEL if is_model(name) else DataFile.State.LOOKING,
            confirm=confirm,
            description=description,
            created_by=actor,
        )
        audit(actor, "file.upload", row.name, id=row.pk, sha256=file.sha256, size=size)
        commands.send(tasks.FILES)
        announce()
    return row


def too_large() -> TooLarge:
    return TooLarge(
        f"The file is larger than {settings.UPLOAD_BYTES_MAX:,} bytes.",
        safe="Nothing was stored.",
        next="Split it, or raise FOGLINE_UPLOAD_BYTES_MAX.",
    )


def is_model(name: str) -> bool:
    return name.lower().endswith(".onnx")


def _described(file: UploadedFile, size: int) -> bytes:
    """Returns a description of a model's inputs and outputs. The description may stand anywhere in the
    model's file."""
    if size > MODEL_BYTES_MAX:
        raise TooLarge(
            f"The model is larger than {MODEL_BYTES_MAX:,} bytes.",
            safe="Nothing was stored.",
            next="Make it smaller, with fewer layers or with numbers of fewer bits.",
        )
    try:
        return described(b"".join(_parts(file)))
    except ModelUnreadable as error:
        raise Invalid(
            f"The model cannot be used: {error}.",
            safe="Nothing was stored.",
            next="Export it again as ONNX, in one file.",
        ) from error


def file_json(file: DataFile, uses: list[FileUse]) -> StoredFile:
    facts, report = file.facts or {}, file.report
    importing = file.state == DataFile.State.IMPORTING
    return {
        "id": file.pk,
        "reference": file.reference,
        "name": file.name,
        "size": file.size,
        "sha256": file.sha256,
        "kind": "model" if file.state == DataFile.State.MODEL else "table",
        "state": cast(FileState, file.state),
        "progress": {
            "bytes_done": file.bytes_done,
            "bytes_total": file.bytes_total,
            "rows": file.rows_done,
        }
        if importing
        else None,
        "error": file.error,
        "columns": facts.get("columns", []),
        "rows": facts.get("rows"),
        "dead_rows": report["dead"] if report else None,
        "unread_cells": sum(column["unreadable"] for column in report["columns"]) if report else None,
        "has_time": facts.get("time"),
        "table_bytes": file.table_size,
        "uses": uses,
        "created_at": file.created_at.isoformat(),
        "created_by": file.created_by.username if file.created_by else None,
    }


def file_detail(file: DataFile, uses: list[FileUse]) -> FileDetail:
    return {
        **file_json(file, uses),
        "detection": file.detection,
        "reading": file.reading,
        "report": file.report,
    }


def safe_name(name: str) -> str:
    """Returns a plain file name for display and downloads: without directories and control characters."""
    name = unicodedata.normalize("NFC", PurePosixPath(name.replace("\\", "/")).name)
    name = re.sub(r"[^\w. ()+-]", "_", name).strip(" .")
    if len(name) > NAME_CHARACTERS_MAX:
        stem, dot, suffix = name.rpartition(".")
        name = stem[: NAME_CHARACTERS_MAX - len(suffix) - 1] + dot + suffix if dot else name
    return name[:NAME_CHARACTERS_MAX] or "file"


def _parts(file: UploadedFile) -> Iterator[bytes]:
    file.seek(0)
    yield from file.chunks()
