"""A thread that reads topics in advance, next to the thread that runs a group's batches.

Records are fetched, unpacked and parsed while a batch is processed and while it is committed. Much of that
work is done by C code that lets other threads run Python. A batch whose rows are not all there waits for this
thread. If it read them itself, the thread would have to stand still meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from pipeline_runtime.batch.portions import PortionReader, read_ahead


class ReadingAhead:
    """The thread begins with the first call of `go_on`, and ends with `stop`. It uses the readers that it was
    given last, but not between `pause` or `stop` and `go_on`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._given: tuple[list[PortionReader], list[PortionReader]] | None = None
        self._given_last: tuple[list[PortionReader], list[PortionReader]] | None = None
        self._waited: tuple[PortionReader, Callable[[], bool]] | None = None
        self._is_paused = False
        self._is_reading = False
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    def go_on(self, readers: Collection[PortionReader], held: Collection[PortionReader]) -> None:
        """Reads ahead with `readers`, until all of `held` hold as much as a task may, or nothing is there.
        Raises what the thread has raised."""
        with self._changed:
            self._raise()
            if not readers:
                return
            self._given = self._given_last = list(readers), list(held)
            self._is_paused = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="reading ahead", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait_for(self, reader: PortionReader, is_there: Callable[[], bool]) -> None:
        """Returns when `is_there`, or when the thread does not come any further with this reader. Raises what
        the thread has raised. The thread wakes whoever waits here after each portion that it has read."""
        with self._changed:
            if self._is_paused or self._given_last is None or is_there():
                return
            self._given, self._waited = self._given_last, (reader, is_there)
            self._changed.notify_all()
            self._changed.wait_for(lambda: is_there() or not (self._is_reading or self._given))
            self._waited = None
            self._raise()

    def pause(self) -> None:
        """Returns when the thread reads nothing any more. It may have to end with some 20,000 rows. Raises
        what the thread has raised."""
        with self._changed:
            self._given, self._is_paused = None, True
            self._changed.wait_for(lambda: not self._is_reading)
            self._raise()

    def stop(self) -> None:
        """Returns when the thread reads nothing any more, as `pause` does. So its readers may be closed. The
        next `go_on` begins another thread."""
        with self._changed:
            self._thread = None
            self._given, self._is_paused = None, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_reading)
            self._failure = None

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._changed:
                self._is_reading = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._given is not None or self._thread is not me)
                if self._given is None or self._thread is not me:
                    return
                (readers, held), self._given = self._given, None
                self._is_reading = True
            try:
                read_ahead(readers, held, self._is_to_look, self._waited_for)
            except Exception as error:
                with self._changed:
                    self._failure = error

    def _is_to_look(self) -> bool:
        with self._changed:
            self._changed.notify_all()
            return self._is_paused or self._given is not None

    def _waited_for(self) -> PortionReader | None:
        with self._changed:
            if self._waited is None:
                return None
            reader, is_there = self._waited
            return None if is_there() else reader
