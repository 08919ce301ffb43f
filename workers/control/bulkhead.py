"""Lets what is wrong with one row stop nobody but that row."""

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
"""Redis or the database is away: all of the round is done again, nothing of it is passed over."""
LOG_AGAIN_S = 60.0
TELL_AGAIN_S = 600.0
"""What fails, works and fails again is not told each time."""
REASON_LENGTH_MAX = 300


class Bulkhead:
    """Of one thread. What fails is logged with its traceback, told as an alert of the node, and passed over.

    Told once while it lasts, and logged once a minute: heartbeats come every second.
    """

    def __init__(self) -> None:
        self._failing: dict[str, tuple[str, float]] = {}  # key -> (what was logged, when, monotonic s)
        self._told: set[str] = set()  # those that fail, and that it was told of
        self._told_at_s: dict[str, float] = {}

    @contextmanager
    def only(self, key: str, alert: str, node: str) -> Iterator[None]:
        """Passes over what fails inside, but for NOT_OF_ONE_ROW. `alert`: what follows from that."""
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
            # The frames alone: an error's own text, as Python prints it, may show what stood in the row.
            log.error("%s failed, the others go on: %s\n%s", key, reason(error), "".join(frames.format()))
        if key not in self._told and now_s - self._told_at_s.get(key, -TELL_AGAIN_S) >= TELL_AGAIN_S:
            self._tell(f"{alert} ({type(error).__name__}; see the log of the control process)", node)
            # Once that is committed: else an alert that was rolled back would count as told.
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
    """One line without the values that were refused: they may be a user's secrets."""
    if isinstance(error, ValidationError):
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        return f"{error.title} is not valid: {text}"[:REASON_LENGTH_MAX]
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:REASON_LENGTH_MAX]
