"""A checkpoint's table of contents. It travels as JSON and names every chunk by its sha256."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError, field_validator

from pipeline_runtime.checkpoint.errors import CheckpointDamaged
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import Frozen

SHA256 = re.compile(r"[0-9a-f]{64}")
# Group ids become column families and parts of URLs. They never become paths on a disk.
GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class FileEntry(Frozen):
    path: str  # relative to the replica directory, with "/"
    size: int  # bytes
    chunks: tuple[str, ...]  # sha256 of each piece's raw bytes, in order

    @field_validator("path")
    @classmethod
    def _confined(cls, value: str) -> str:
        parts = PurePosixPath(value).parts
        if not parts or value.startswith("/") or ".." in parts or "\0" in value or "\\" in value:
            raise ValueError(f"{value!r} is not a path inside a replica directory")
        return value

    @field_validator("chunks")
    @classmethod
    def _hashes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for sha in value:
            if not SHA256.fullmatch(sha):
                raise ValueError(f"{sha!r} is not a sha256")
        return value


class CheckpointSummary(Frozen):
    """The facts about a checkpoint that a list shows."""

    group: str
    seq: Seq
    epoch: Epoch
    version: str  # GroupSpec.version of the code that wrote the state
    node: str
    created_at_ms: int
    ends: dict[str, Any]  # input positions at seq, as in the journal
    bytes_total: int  # raw bytes of all files
    bytes_new: int  # raw bytes of the chunks that the storing node did not have before


class Manifest(CheckpointSummary):
    files: tuple[FileEntry, ...]
    hash: str = ""  # sha256 of this manifest's JSON without this field; see `sealed`

    @property
    def chunks(self) -> frozenset[str]:
        return frozenset(sha for file in self.files for sha in file.chunks)

    def summary(self) -> CheckpointSummary:
        return CheckpointSummary.model_validate(self.model_dump(exclude={"files", "hash"}))

    def sealed(self) -> Manifest:
        return self.model_copy(update={"hash": self._digest()})

    def _digest(self) -> str:
        body = self.model_dump(mode="json", exclude={"hash"})
        return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Manifest:
        """Raises CheckpointDamaged when the bytes are no manifest or its hash does not agree."""
        try:
            manifest = cls.model_validate_json(raw)
        except ValidationError as error:
            raise CheckpointDamaged(
                f"A checkpoint's manifest cannot be read: {error.error_count()} faults.",
                "Other checkpoints are not affected.",
                "The next older checkpoint is used instead.",
            ) from error
        if manifest.hash != manifest._digest():
            raise CheckpointDamaged(
                f"The manifest of checkpoint {manifest.seq} of {manifest.group} does not match its hash.",
                "Other checkpoints are not affected.",
                "The next older checkpoint is used instead.",
            )
        return manifest
