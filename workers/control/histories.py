"""The points behind the dashboard's curves: a Redis list of each node and element, oldest first."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import redis

from workers import messages

log = logging.getLogger(__name__)

_KEPT_S = 86_400  # after the last point


class Histories:
    """Of one thread. Collects the points of a round, for one trip to Redis behind its transactions."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._at_s: dict[str, float] = {}
        self._points: list[tuple[str, dict[str, Any]]] = []

    def due(self, of: str) -> bool:
        """True once each HISTORY_INTERVAL_S: a point of it is to be added."""
        now_s = time.monotonic()
        if now_s - self._at_s.get(of, float("-inf")) < messages.HISTORY_INTERVAL_S - 0.1:
            return False
        self._at_s[of] = now_s
        return True

    def add(self, key: str, point: dict[str, Any]) -> None:
        self._points.append((key, point))

    def write(self) -> None:
        """What was added. Raises redis.RedisError, and then that is left out."""
        points, self._points = self._points, []
        if not points:
            return
        pipe = self._redis.pipeline(transaction=False)
        for key, point in points:
            pipe.rpush(key, _short(point))
            pipe.ltrim(key, -messages.HISTORY_POINTS_MAX, -1)
            pipe.expire(key, _KEPT_S)
        try:
            pipe.execute()
        except redis.exceptions.OutOfMemoryError as error:
            # The reports themselves may be what fills Redis: they must go on being read, and deleted.
            log.debug("%d points are left out: %s", len(points), error)


def _short(point: dict[str, Any]) -> str:
    """Redis keeps 1,800 of them for each element, so no digit and no blank that nobody sees."""
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in point.items()}
    return json.dumps(rounded, separators=(",", ":"))
