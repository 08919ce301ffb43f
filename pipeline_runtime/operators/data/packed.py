"""Writes the shipped files, for the scripts in this directory."""

from __future__ import annotations

import gzip
from pathlib import Path


def write_packed(path: Path, text: str) -> None:
    """Writes the same bytes each time, on any system."""
    with path.open("wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(text.encode())
