"""Writes the bytes of an upload into a file without a name as they arrive, and computes their sha256."""

from __future__ import annotations

import hashlib
import tempfile
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler


class HashedFile(UploadedFile):
    """An upload whose bytes have been hashed already."""

    sha256: str


class HashingHandler(FileUploadHandler):
    """Writes an upload into a file without a name, so that nothing is left if this process is killed."""

    def new_file(self, *given: Any, **more: Any) -> None:
        super().new_file(*given, **more)
        # Django closes the file at the end of the request.
        self._file = tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115
        self._digest = hashlib.sha256()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._file.write(raw_data)
        self._digest.update(raw_data)

    def file_complete(self, file_size: int) -> HashedFile:
        self._file.seek(0)
        found = HashedFile(
            self._file, self.file_name, self.content_type, file_size, self.charset, self.content_type_extra
        )
        found.sha256 = self._digest.hexdigest()
        return found

    def upload_interrupted(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()
