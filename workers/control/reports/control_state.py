"""Reports to the web that control takes in reports, and the problems that control has."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis
from django.utils import timezone

from webapp.backends.control_state import tell_control_state

log = logging.getLogger(__name__)


class ControlState:
    """Without it, the dashboard would show old figures as if they were new."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._since: dict[tuple[str, str], str] = {}  # (kind, message) -> since when it is so

    def tell(self, troubles: Sequence[tuple[str, str]]) -> None:
        """`troubles`: (kind, message) of everything that is wrong now. Raises redis.RedisError."""
        now = timezone.now().isoformat()
        self._since = {each: self._since.get(each, now) for each in troubles}
        told = [
            {"kind": kind, "message": message, "since": since}
            for (kind, message), since in self._since.items()
        ]
        try:
            tell_control_state(self._redis, told)
        except redis.exceptions.OutOfMemoryError as error:
            log.debug("the web is not told that control works: %s", error)
