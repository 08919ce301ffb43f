"""A thread of control that repeats one task."""

from __future__ import annotations

import logging
import threading

from django.db import close_old_connections

from workers.control.context import ControlContext

log = logging.getLogger(__name__)


class Periodic:
    """A thread that calls `look` each `every_s`, from `start` until control ends; with 0 it never does.

    Nothing else may depend on it: what fails is logged, and tried again the next time.
    """

    name: str
    failure: str
    """What the log says when `look` has failed."""

    def __init__(self, context: ControlContext, every_s: float) -> None:
        self._context = context
        self._every_s = every_s
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def look(self) -> None:
        raise NotImplementedError

    def let_go(self) -> None:
        """Gives up what it holds, since a look has failed or control ends."""

    def start(self) -> None:
        if self._every_s:
            self._thread.start()

    def join(self, timeout_s: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._context.closing.wait(self._every_s):
            try:
                close_old_connections()
                self.look()
            except Exception as error:
                log.warning("%s: %s", self.failure, error, exc_info=True)
                self.let_go()
        self.let_go()
