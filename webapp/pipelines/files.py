"""Uploaded data files: the bytes go to the central chunk service, the database knows their name."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.monitoring.records import audit
from webapp.pipelines.chunk_store import put_file
from webapp.pipelines.models import DataFile
from webapp.problems import Invalid, TooLarge

HEAD_BYTES = 64 * 1024
NAME_CHARACTERS_MAX = 120


def upload(actor: User, file: UploadedFile) -> DataFile:
    """Store one data file. The same bytes twice are stored once."""
    require(actor, Role.EDITOR, "upload files")
    size = file.size or 0
    if size > settings.UPLOAD_BYTES_MAX:
        raise too_large()
    if size == 0:
        raise Invalid("The file is empty.", safe="Nothing was stored.")
    digest = hashlib.sha256()
    head = b""
    for part in file.chunks():
        digest.update(part)
        if len(head) < HEAD_BYTES:
            head = (head + part)[:HEAD_BYTES]
    sha256 = digest.hexdigest()
    put_file(sha256, _parts(file))
    with transaction.atomic():
        row = DataFile.objects.create(
            name=safe_name(file.name or ""),
            sha256=sha256,
            size=size,
            head=head,
            columns=csv_columns(head),
            created_by=actor,
        )
        audit(actor, "file.upload", row.name, id=row.pk, sha256=sha256, size=size)
    return row


def too_large() -> TooLarge:
    return TooLarge(
        f"The file is larger than {settings.UPLOAD_BYTES_MAX:,} bytes.",
        safe="Nothing was stored.",
        next="Split it, or raise FOGLINE_UPLOAD_BYTES_MAX.",
    )


def file_json(file: DataFile) -> dict[str, Any]:
    return {
        "id": file.pk,
        "reference": file.reference,
        "name": file.name,
        "size": file.size,
        "sha256": file.sha256,
        "columns": file.columns,
        "created_at": file.created_at.isoformat(),
        "created_by": file.created_by.username if file.created_by else None,
    }


def safe_name(name: str) -> str:
    """A bare file name for showing and downloading: no directories, no control characters."""
    name = unicodedata.normalize("NFC", PurePosixPath(name.replace("\\", "/")).name)
    name = re.sub(r"[^\w. ()+-]", "_", name).strip(" .")
    if len(name) > NAME_CHARACTERS_MAX:
        stem, dot, suffix = name.rpartition(".")
        name = stem[: NAME_CHARACTERS_MAX - len(suffix) - 1] + dot + suffix if dot else name
    return name[:NAME_CHARACTERS_MAX] or "file"


def csv_columns(head: bytes) -> list[dict[str, str]]:
    """Names and guessed types of a CSV file's columns; [] when it is none with a header line."""
    if b"\0" in head:
        return []
    text = head.decode("utf-8-sig", errors="replace")
    if len(head) >= HEAD_BYTES:
        text = text.rpartition("\n")[0]
    lines = text.splitlines()
    if not lines:
        return []
    # Not csv.Sniffer: its expressions take quadratic time, and a comma in a quoted cell misleads it.
    delimiter = max(",;\t|", key=lines[0].count)
    rows = list(csv.reader(io.StringIO("\n".join(lines[:200])), delimiter=delimiter))
    names = [name.strip() for name in rows[0]]
    if not all(names) or len(set(names)) != len(names) or all(_type_of(name) != "string" for name in names):
        return []
    columns = []
    for index, name in enumerate(names):
        values = [row[index].strip() for row in rows[1:] if len(row) > index and row[index].strip()]
        columns.append({"name": name, "type": _common(values)})
    return columns


def _common(values: list[str]) -> str:
    types = {_type_of(value) for value in values}
    if types == {"integer", "number"}:
        return "number"
    return types.pop() if len(types) == 1 else "string"


def _type_of(value: str) -> str:
    if re.fullmatch(r"[+-]?\d{1,18}", value):
        return "integer"
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", value):
        return "number"
    if value.lower() in ("true", "false"):
        return "boolean"
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", value):
        return "timestamp"
    return "string"


def _parts(file: UploadedFile) -> Iterator[bytes]:
    file.seek(0)
    yield from file.chunks()
