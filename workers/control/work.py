"""Runs operations, handovers and orders about dead letters in threads of their own, until they have an
outcome.

The database has what there is to do. A command only says "look now". A sweep finds work whose command was
lost or has expired, and work that a crash of this process interrupted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import close_old_connections, connection

from webapp.handovers.models import Handover
from webapp.operations.models import Operation
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers.drains import tend_drains
from workers.control.handovers.driver import drive_handover
from workers.control.handovers.queues import tend_queues
from workers.control.handovers.recording import keep_written
from workers.control.handovers.restorations import order_restorations
from workers.control.handovers.standbys import tidy_copies
from workers.control.letters import elements_with_orders, settle_letters
from workers.control.operations.driver import drive_operation
from workers.control.policies import PolicyKeeper

log = logging.getLogger(__name__)


class Work:
    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._bulkhead = Bulkhead()  # belongs to the sweeper
        self._policies = PolicyKeeper(context)  # belongs to the sweeper
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._sweeper = threading.Thread(target=self._sweep, name="sweep", daemon=True)

    def start(self) -> None:
        self._sweeper.start()

    def join(self, timeout_s: float) -> None:
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(timeout_s)

    def operation(self, id: str) -> None:
        self._ensure(f"operation {id}", lambda: drive_operation(id, self._context))

    def handover(self, id: str) -> None:
        self._ensure(f"handover {id}", lambda: self._hand_over(id))

    def letters(self, deployment: str, element: str) -> None:
        self._ensure(
            f"letters of {deployment}.{element}", lambda: settle_letters(deployment, element, self._context)
        )

    def look(self) -> None:
        """Sweeps now: something was ordered and is in the database."""
        self._context.work.notify()

    def _ensure(self, key: str, do: Callable[[], None]) -> None:
        """Starts a thread for `key`, or wakes the one that runs already."""
        with self._lock:
            if self._context.closing.is_set():
                return
            if key in self._threads:
                self._context.reports.notify()
                return
            thread = threading.Thread(target=self._run, args=(key, do), name=key, daemon=True)
            self._threads[key] = thread
        thread.start()

    def _run(self, key: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception:
            # Its steps can be repeated, so the sweep starts it again.
            log.exception("%s failed; it is started again", key)
            self._context.closing.wait(self._context.tuning.sweep_s)
        finally:
            connection.close()
            with self._lock:
                self._threads.pop(key, None)

    def _hand_over(self, id: str) -> None:
        drive_handover(id, self._context)
        self.look()  # a queue of moves, or a drain, that waits for this handover may go on
        keep_written(id, self._context)

    def _sweep(self) -> None:
        seen = -1
        while not self._context.closing.is_set():
            try:
                close_old_connections()
                order_restorations(self._context, self._bulkhead)
                tend_queues(self._bulkhead)
                tend_drains(self._context, self._bulkhead)
                self._policies.look(self._bulkhead)
                tidy_copies(self._context)
                self._start_what_is_left()
            except Exception:
                log.exception("the look for unfinished work failed; it is tried again")
            seen = self._context.work.wait(seen, self._context.tuning.sweep_s)

    def _start_what_is_left(self) -> None:
        for operation in Operation.objects.filter(status__in=Operation.UNFINISHED).order_by("created_at"):
            self.operation(str(operation.pk))
        for handover in Handover.objects.filter(outcome__isnull=True):
            self.handover(str(handover.pk))
        for deployment, element in elements_with_orders():
            self.letters(deployment, element)
