"""Keeps a StateDatabase usable: opens it again after a full disk, and sets a damaged one aside.

    usable --full disk--> failed --reopen--> usable, as soon as there is space again
    usable --damage-----> failed --rename, open a new one--> usable, and empty

The Caretaker keeps a database that it has set aside, so that a person can look at it. The new database takes
new checkpoints. Earlier checkpoints are still in the other places: the central store and the backup node.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import CheckpointError, StateDatabaseUnavailable

_log = logging.getLogger(__name__)

_PAUSE_S = 5.0
"""The time between two tries to open a database again. Its disk may stay full for long."""
_TOLD_FOR_S = 3600.0


def set_aside(path: Path) -> Path:
    """Renames a database that cannot be used and returns its new name. Raises OSError."""
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    number = 1
    while aside.exists():
        aside, number = aside.with_name(f"{aside.name}-{number}"), number + 1
    os.replace(path, aside)
    return aside


class Caretaker:
    """Looks after one database, by a thread that also calls `tend` every `every_s`. All methods are
    thread-safe.

    If another process uses the database, the constructor raises the error of StateDatabase and changes
    nothing.
    """

    def __init__(
        self,
        path: Path,
        tend: Callable[[], None],
        changed: Callable[[], None],
        *,
        every_s: float,
        reserve_bytes: int = 0,
    ) -> None:
        self._tend = tend
        self._changed = changed
        self._every_s = every_s
        self._lock = threading.Lock()
        # the message about a database that was set aside, and the time until which it is shown
        self._told: tuple[float, str] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"care {path.name}", daemon=True)
        self.database = StateDatabase(path, reserve_bytes=reserve_bytes, shut=True)
        try:
            self.database.reopen()
        except StateDatabaseUnavailable as error:
            if error.reason == "in use":
                raise
            self.mend()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Closes the database too."""
        self._closing.set()
        self.database.failed.set()  # wakes the thread
        if self._thread.ident is not None:
            self._thread.join(5.0)
        self.database.close()

    def alerts(self) -> tuple[str, ...]:
        """Returns what is wrong with the database now, and what was set aside lately."""
        failure, told = self.database.failure, self._told
        found = [f"{failure.message} {failure.safe} {failure.next}"] if failure else []
        if told is not None and time.monotonic() < told[0]:
            found.append(told[1])
        return tuple(found)

    def mend(self) -> bool:
        """Makes the database usable again. Returns whether it is usable, perhaps as a new and empty one."""
        with self._lock:
            failure = self.database.failure
            if failure is None:
                return True
            if failure.reason != "damaged":
                failure = self._reopened()
            if failure is not None and failure.reason in ("damaged", "other"):
                failure = self._replaced(failure)
        self.tell()
        return failure is None

    def tell(self) -> None:
        """Reports what was done. The report may be written to the same full disk, and that must not keep the
        database closed."""
        try:
            self._changed()
        except Exception:
            _log.exception("%s: the change could not be reported", self.database.path)

    def _reopened(self) -> StateDatabaseUnavailable | None:
        try:
            self.database.reopen()
        except StateDatabaseUnavailable as error:
            return error
        _log.info("%s is open again", self.database.path)
        return None

    def _replaced(self, damage: StateDatabaseUnavailable) -> StateDatabaseUnavailable | None:
        path = self.database.path
        self.database.close()
        try:
            aside = set_aside(path)
        except OSError as error:
            _log.error("%s cannot be set aside: %s", path, error)
            return damage
        text = (
            f"The state database {path} could not be used and was set aside as {aside.name}. "
            "Running elements are not affected, and other places still hold their checkpoints. "
            f"A new one was begun; look at the disk, then delete {aside.name}. ({damage.message})"
        )
        _log.error("%s", text)
        self._told = (time.monotonic() + _TOLD_FOR_S, text)
        return self._reopened()

    def _run(self) -> None:
        next_s = time.monotonic() + self._every_s
        while not self._closing.is_set():
            self.database.failed.wait(max(0.0, next_s - time.monotonic()))
            if self._closing.is_set():
                return
            if self.database.failure is not None:
                if not self.mend():
                    _log.warning("%s", self.database.failure)
                self._closing.wait(_PAUSE_S)
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + self._every_s
                self._tend_once()
                self.tell()  # reports what could not be reported before

    def _tend_once(self) -> None:
        try:
            self._tend()
        except CheckpointError as error:
            _log.warning("old checkpoints could not be removed: %s", error)
        except Exception:
            _log.exception("old checkpoints could not be removed")
