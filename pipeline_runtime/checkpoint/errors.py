"""Errors of checkpoints. Each says what happened, what is safe, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal


class CheckpointError(Exception):
    """Base of this package's errors. `str()` gives all three sentences."""

    def __init__(self, message: str, safe: str, next: str) -> None:
        super().__init__(f"{message} {safe} {next}")
        self.message = message
        self.safe = safe
        self.next = next


class SnapshotFailed(CheckpointError):
    """The replica directory holds no batch to take a snapshot of: nothing is committed, or files are missing,
    unreadable or shorter than what was committed."""


class NothingCommitted(SnapshotFailed):
    """The query has not committed a batch in this directory yet. That is normal for a new replica."""


class CheckpointDamaged(CheckpointError):
    """A chunk, a file or a manifest does not match its hash."""


class CheckpointMissing(CheckpointError):
    """There is no such checkpoint, or none that is whole."""


class ChunkMissing(CheckpointError):
    """The database does not hold this chunk, or no longer does."""


class ChunksMissing(CheckpointError):
    """A manifest names chunks that the database lacks. Send these, then the manifest again."""

    def __init__(self, shas: Iterable[str]) -> None:
        self.shas = tuple(shas)
        super().__init__(
            f"{len(self.shas)} chunks of the checkpoint are not in the database.",
            "Nothing was changed; older checkpoints are whole.",
            "Send the missing chunks, then the manifest again.",
        )


Reason = Literal["in use", "full", "low", "system", "damaged", "closed", "other"]
"""Why a database cannot be used. `low`: its disk has less free space than checkpoints have to leave.
`system`: the operating system refuses, which says nothing about the database."""

_FULL = ("No space left", "File too large", "quota")
_SYSTEM = ("Too many open files", "Permission denied", "Read-only file system", "Cannot allocate memory")


class StateDatabaseUnavailable(CheckpointError):
    """The database cannot be opened, read or written: it is locked or damaged, or the disk is full."""

    def __init__(self, message: str, safe: str, next: str, reason: Reason = "other") -> None:
        super().__init__(message, safe, next)
        self.reason = reason


def database_closed(path: Path) -> StateDatabaseUnavailable:
    return StateDatabaseUnavailable(
        f"The state database {path} is closed.",
        "What was stored is safe.",
        "Wait for its process to start again.",
        "closed",
    )


def database_low(path: Path, reserve_bytes: int) -> StateDatabaseUnavailable:
    return StateDatabaseUnavailable(
        f"The disk of {path} has less than {reserve_bytes // 1_000_000} MB left.",
        "Running elements go on, and the checkpoints that are there are whole.",
        "No checkpoint is stored there until disk space is free.",
        "low",
    )


def database_unavailable(path: Path, error: Exception) -> StateDatabaseUnavailable:
    """Returns the error that RocksDB's own words mean."""
    text = str(error)
    if "lock" in text.lower() and "LOCK" in text:
        return StateDatabaseUnavailable(
            f"The state database {path} is in use by another process.",
            "Its content is not affected.",
            "Stop the other process that uses this data directory, or set FOGLINE_DATA to another one.",
            "in use",
        )
    if any(words.lower() in text.lower() for words in _FULL):
        return StateDatabaseUnavailable(
            f"The disk of the state database {path} is full.",
            "Checkpoints that were stored before are whole, and running elements go on.",
            "Free disk space; checkpoints then go on by themselves.",
            "full",
        )
    if any(words in text for words in _SYSTEM):
        return StateDatabaseUnavailable(
            f"The state database {path} cannot be used: {text}",
            "Its content and running elements are not affected.",
            "Remove the cause; checkpoints then go on by themselves.",
            "system",
        )
    return StateDatabaseUnavailable(
        f"The state database {path} cannot be used: {text}",
        "Running elements and the checkpoints in other state databases are not affected.",
        "If it is damaged, it is put aside and a new one begun: look at the disk.",
        "damaged" if "Corruption" in text else "other",
    )


class AccessDenied(CheckpointError):
    """The bearer token is missing, wrong, expired, or for another scope."""


class ServiceUnavailable(CheckpointError):
    """A chunk service cannot be reached, refuses, or cannot be started."""
