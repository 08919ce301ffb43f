"""The counts of an element's gaps on its node's disk, so that a restart forgets none."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from pipeline_runtime.disk import sync_directory

log = logging.getLogger(__name__)


class Gaps(NamedTuple):
    times: int = 0
    """in which rows were lost"""
    rows: int = 0
    """how many these were, as far as that is known"""
    counter: str = ""
    """Which counter this is. One that begins again at 0 has another name, so that sums miss nothing."""


def new_counter() -> Gaps:
    """Returns a counter that has counted nothing, with a name that no other has."""
    return Gaps(counter=uuid4().hex)


class KeptGaps:
    """A small file. One process uses it at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Gaps:
        """Returns what an earlier process has counted. Without a file that can be read, a new counter begins
        at 0."""
        try:
            found = json.loads(self._path.read_text())
            return Gaps(int(found["times"]), int(found["rows"]), str(found["counter"]))
        except FileNotFoundError:
            return new_counter()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("the counts of gaps in %s cannot be read, and begin at 0: %s", self._path, error)
            return new_counter()

    def write(self, gaps: Gaps) -> None:
        """If the disk refuses, the counts stay in memory, and the next gap writes them."""
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("w") as file:
                file.write(json.dumps(gaps._asdict()))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
            sync_directory(self._path.parent)
        except OSError as error:
            log.warning("the counts of gaps are not kept in %s now: %s", self._path, error)

    def forget(self) -> None:
        """Removes the counts of an element that has gone for good."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
