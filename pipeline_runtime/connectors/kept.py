"""Keeps facts about an element's gaps on the node's disk, so that no restart forgets a gap."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pipeline_runtime.disk import sync_directory

log = logging.getLogger(__name__)

BEGINNINGS_MAX = 100
"""How many processes have a gap that is kept and not told yet."""


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
        try:
            _write(self._path, gaps._asdict())
        except OSError as error:
            log.warning("the counts of gaps are not kept in %s now: %s", self._path, error)

    def forget(self) -> None:
        """Removes the counts of an element that has gone for good."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


class Beginning(NamedTuple):
    """The first answer of a system to a process, as long as the gap before it is not told."""

    answered_ms: int
    left_ms: int | None
    """When the newest row had come that earlier processes had left on the disk, if there was one."""


class KeptBeginnings:
    """A small file beside rows on the disk: from when on the rows of each process are. One process uses it at
    a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[Beginning, ...]:
        """Returns none if the file cannot be read."""
        try:
            return tuple(Beginning(*each) for each in json.loads(self._path.read_text()))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError) as error:
            log.warning("the gaps that are not told yet in %s cannot be read: %s", self._path, error)
            return ()

    def write(self, beginnings: Sequence[Beginning]) -> None:
        """Raises OSError. Of very many, the last ones are joined to one long gap."""
        if not beginnings:
            self.forget()
            return
        most = beginnings[:BEGINNINGS_MAX]
        joined = Beginning(beginnings[-1].answered_ms, most[-1].left_ms)
        _write(self._path, [*most[:-1], joined])

    def forget(self) -> None:
        with suppress(FileNotFoundError):
            self._path.unlink()


def _write(path: Path, content: Any) -> None:
    """Writes a file as a whole: after a kill it is the old one or the new one. Raises OSError."""
    fresh = path.with_suffix(".new")
    path.parent.mkdir(parents=True, exist_ok=True)
    with fresh.open("w") as file:
        file.write(json.dumps(content))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)
