"""Allows only one process for each directory: two would corrupt the data in it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO, Any


class AlreadyRuns(RuntimeError):
    """Another process uses the directory."""


def lock(directory: Path, who: str) -> IO[Any]:
    """Locks the directory for `who`, until the returned file is closed or the process ends. Raises
    AlreadyRuns."""
    file = open(directory / "lock", "a")  # noqa: SIM115 - held as long as the process lives
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise AlreadyRuns(
            f"Another process runs {who} in {directory}. Nothing was started. Stop that one first."
        ) from error
    return file
