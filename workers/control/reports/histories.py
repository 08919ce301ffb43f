"""The points of the dashboard's curves, and the samples by which policies decide.

Redis has a list of them for each node and element, oldest first.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import redis

from pipeline_runtime.model.desired import NodeLoad
from workers import messages

log = logging.getLogger(__name__)

_KEPT_S = 86_400  # after the last point


class Histories:
    """Collects the points of a round, and writes them in one trip to Redis after its transactions.

    Belongs to one thread.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._at_s: dict[str, float] = {}
        self._points: list[tuple[str, dict[str, Any], int]] = []

    def due(self, of: str, each_s: float | None = None) -> bool:
        """Returns True once each HISTORY_INTERVAL_S, or `each_s`: then a point of it should be added."""
        now_s = time.monotonic()
        each_s = messages.HISTORY_INTERVAL_S if each_s is None else each_s
        if now_s - self._at_s.get(of, float("-inf")) < each_s - 0.1:
            return False
        self._at_s[of] = now_s
        return True

    def add(self, key: str, point: dict[str, Any], most: int = messages.HISTORY_POINTS_MAX) -> None:
        """Adds a point to the list of `key`, which keeps the newest `most`."""
        self._points.append((key, point, most))

    def write(self) -> None:
        """Writes what was added. Raises redis.RedisError; the points are then left out."""
        points, self._points = self._points, []
        if not points:
            return
        pipe = self._redis.pipeline(transaction=False)
        for key, point, most in points:
            pipe.rpush(key, _short(point))
            pipe.ltrim(key, -most, -1)
            pipe.expire(key, _KEPT_S)
        try:
            pipe.execute()
        except redis.exceptions.OutOfMemoryError as error:
            # The reports themselves may be what fills Redis. They must still be read, and so be deleted.
            log.debug("%d points are left out: %s", len(points), error)


class NodeSamples:
    """Takes one sample of each node every `each_s`, with the mean CPU since the one before it."""

    def __init__(self, each_s: float) -> None:
        self._each_ms = each_s * 1000
        self._cpu: dict[str, list[float]] = {}  # node -> the CPU in its reports since the last sample
        self._from_ms: dict[str, int] = {}

    def take(self, node: str, heard_ms: int, load: NodeLoad) -> dict[str, Any] | None:
        """Takes in the load of a report. Returns the sample if one is due."""
        cpu = self._cpu.setdefault(node, [])
        cpu.append(load.cpu_ratio)
        from_ms = self._from_ms.setdefault(node, heard_ms)
        if heard_ms - from_ms < self._each_ms:
            return None
        mean = sum(cpu) / len(cpu)
        cpu.clear()
        self._from_ms[node] = heard_ms
        return {
            "t": heard_ms,
            "cpu_ratio": mean,
            "battery_ratio": load.battery_ratio,
            "on_battery": load.on_battery,
        }


def _short(point: dict[str, Any]) -> str:
    """Returns the point as JSON, short: Redis keeps 1,800 of them for each element."""
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in point.items()}
    return json.dumps(rounded, separators=(",", ":"))
