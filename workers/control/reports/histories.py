"""The points behind the dashboard's curves, and the samples by which policies decide: a Redis list of each
node and element, oldest first."""

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
    """Of one thread. Collects the points of a round, for one trip to Redis behind its transactions."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._at_s: dict[str, float] = {}
        self._points: list[tuple[str, dict[str, Any], int]] = []

    def due(self, of: str, each_s: float | None = None) -> bool:
        """True once each HISTORY_INTERVAL_S, or `each_s`: a point of it is to be added."""
        now_s = time.monotonic()
        each_s = messages.HISTORY_INTERVAL_S if each_s is None else each_s
        if now_s - self._at_s.get(of, float("-inf")) < each_s - 0.1:
            return False
        self._at_s[of] = now_s
        return True

    def add(self, key: str, point: dict[str, Any], most: int = messages.HISTORY_POINTS_MAX) -> None:
        """`most`: that many are kept."""
        self._points.append((key, point, most))

    def write(self) -> None:
        """What was added. Raises redis.RedisError, and then that is left out."""
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
            # The reports themselves may be what fills Redis: they must go on being read, and deleted.
            log.debug("%d points are left out: %s", len(points), error)


class NodeSamples:
    """One of each node each `each_s`: the mean CPU since the last one, so that none is only a moment's."""

    def __init__(self, each_s: float) -> None:
        self._each_ms = each_s * 1000
        self._cpu: dict[str, list[float]] = {}  # node -> since its last sample
        self._from_ms: dict[str, int] = {}

    def take(self, node: str, heard_ms: int, load: NodeLoad) -> dict[str, Any] | None:
        """What a report says; the sample, if one is due."""
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
    """Redis keeps 1,800 of them for each element, so no digit and no blank that nobody sees."""
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in point.items()}
    return json.dumps(rounded, separators=(",", ":"))
