"""What can go wrong with checkpoints. Each says what happened, what is safe, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable


class CheckpointError(Exception):
    """Base of this package's errors; `str()` gives all three sentences."""

    def __init__(self, message: str, safe: str, next: str) -> None:
        super().__init__(f"{message} {safe} {next}")
        self.message = message
        self.safe = safe
        self.next = next


class CutFailed(CheckpointError):
    """The replica directory holds no batch that can be cut (nothing committed, or files missing)."""


class NothingCommitted(CutFailed):
    """The query has not committed a batch in this directory yet: normal for a new replica."""


class CheckpointDamaged(CheckpointError):
    """A chunk, a file or a manifest is not what its hash says."""


class CheckpointMissing(CheckpointError):
    """No such checkpoint, or none that is whole."""


class ChunkMissing(CheckpointError):
    """The database does not hold this chunk (any more)."""


class ChunksMissing(CheckpointError):
    """A manifest names chunks that the database lacks: send these, then the manifest again."""

    def __init__(self, shas: Iterable[str]) -> None:
        self.shas = tuple(shas)
        super().__init__(
            f"{len(self.shas)} chunks of the checkpoint are not in the database.",
            "Nothing was changed; older checkpoints are whole.",
            "Send the missing chunks, then the manifest again.",
        )


class StateDatabaseUnavailable(CheckpointError):
    """The database cannot be opened, read or written: locked, damaged, or the disk is full."""


class AccessDenied(CheckpointError):
    """The bearer token is missing, wrong, expired, or for something else."""


class ServiceUnavailable(CheckpointError):
    """A chunk service cannot be reached, refuses, or cannot be started."""
