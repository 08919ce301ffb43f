"""Keeps a fault in one row from stopping the work on all others."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import redis
from django.db import InterfaceError, OperationalError, transaction
from pydantic import ValidationError

from webapp.audit.records import record_event

log = logging.getLogger(__name__)

NOT_OF_ONE_ROW = (redis.RedisError, OperationalError, InterfaceError)
"""Redis or the database is away. Then the whole round is done again, and nothing is passed over."""
LOG_AGAIN_S = 60.0
TELL_AGAIN_S = 600.0
"""How long a fault that was told and comes back is not told again."""
REASON_LENGTH_MAX = 300


class Bulkhead:
    """Passes over what fails, logs it with its traceback, and tells it as an alert of the node.

    While a fault lasts it is told once and logged once a minute: heartbeats come every second. Belongs to one
    thread.
    """

    def __init__(self) -> None:
        self._failing: dict[str, tuple[str, float]] = {}  # key -> (what was logged, when, monotonic s)
        self._told: set[str] = set()  # keys of faults that last and were told
        self._told_at_s: dict[str, float] = {}

    @contextmanager
    def only(self, key: str, alert: str, node: str) -> Iterator[None]:
        """Passes over what fails inside, except NOT_OF_ONE_ROW. `alert` says what follows from the fault."""
        try:
            yield
        except NOT_OF_ONE_ROW:
            raise
        except Exception as error:
            self.failed(key, alert, node, error)
        else:
            self.works(key)

    def works(self, key: str) -> None:
        self._told.discard(key)
        if self._failing.pop(key, None) is not None:
            log.info("%s works again", key)

    def failed(self, key: str, alert: str, node: str, error: Exception) -> None:
        now_s = monotonic()
        frames = traceback.extract_tb(error.__traceback__)
        what = f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
        logged, logged_at_s = self._failing.get(key, ("", 0.0))
        if what != logged or now_s - logged_at_s > LOG_AGAIN_S:
            self._failing[key] = (what, now_s)
            # Only the frames: an error's own text, as Python prints it, may show what the row holds.
            log.error("%s failed, the others go on: %s\n%s", key, reason(error), "".join(frames.format()))
        if key not in self._told and now_s - self._told_at_s.get(key, -TELL_AGAIN_S) >= TELL_AGAIN_S:
            self._tell(f"{alert} ({type(error).__name__}; see the log of the control process)", node)
            # Only when it is committed: an alert that is rolled back was not told.
            transaction.on_commit(lambda: self._was_told(key, now_s))

    def _was_told(self, key: str, at_s: float) -> None:
        self._told.add(key)
        self._told_at_s[key] = at_s

    def _tell(self, text: str, node: str) -> None:
        try:
            record_event("node.alert", text, severity="error", node=node or None)
        except NOT_OF_ONE_ROW:
            raise
        except Exception:
            log.exception("that could not be told: %s", text)


def reason(error: Exception) -> str:
    """Returns one line about an error, without the refused values: they may be a user's secrets."""
    if isinstance(error, ValidationError):
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        return f"{error.title} is not valid: {text}"[:REASON_LENGTH_MAX]
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:REASON_LENGTH_MAX]
