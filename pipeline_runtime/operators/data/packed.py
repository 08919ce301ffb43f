"""How the scripts beside it write what is shipped."""

from __future__ import annotations

import gzip
from pathlib import Path


def write_packed(path: Path, text: str) -> None:
    """The same bytes each time, and on any system."""
    with path.open("wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(text.encode())
