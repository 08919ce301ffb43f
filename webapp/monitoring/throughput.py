"""Computes how many rows a second entered each pipeline lately: the points of the overview's small curves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from time import time
from typing import Any

import redis
from django.conf import settings

from pipeline_runtime.wire import keys
from webapp.json_types import Number
from webapp.monitoring.board import Board
from webapp.monitoring.schemas import Throughput
from webapp.pipelines.shape import elements_of, is_view

SPAN_MS = 5 * 60_000
STEP_MS = 10_000
POINTS_READ = 160
"""For each source, one point per 2 s: a bit more than the span."""

Point = Mapping[str, Any]  # {"t": ms, "rows_out_per_s", "rows_in_per_s"}


def throughputs(board: Board) -> dict[str, Throughput]:
    """Returns the throughput by deployed pipeline.

    `rows_per_s` holds what its sources gave in each step up to `until_ms`, or None for a step without
    reports. Without Redis there are no points.
    """
    sources = {}
    for pipeline in board.pipelines:
        deployment = board.deployment(pipeline)
        if deployment is not None:
            document = deployment.version.document
            sources[pipeline.name] = (deployment.pk, _sources(document))
    histories = iter(_read([(id, source) for id, found in sources.values() for source in found]))
    now_ms = int(time() * 1000)
    return {
        name: {
            "sources": found,
            "step_ms": STEP_MS,
            "until_ms": now_ms // STEP_MS * STEP_MS,
            "rows_per_s": summed([next(histories) for _ in found], now_ms),
        }
        for name, (_, found) in sources.items()
    }


def _sources(document: dict[str, Any]) -> list[str]:
    return [
        element["id"]
        for element in elements_of(document)
        if not element.get("inputs") and not is_view(element.get("type"))
    ]


def summed(histories: Iterable[Iterable[Point]], now_ms: int) -> list[Number | None]:
    """Returns for each whole step of the span the sum over all sources of each one's mean."""
    last = now_ms // STEP_MS
    length = SPAN_MS // STEP_MS
    sums: list[float | None] = [None] * length
    for points in histories:
        steps: dict[int, list[float]] = {}
        for point in points:
            index = int(point["t"]) // STEP_MS - (last - length)
            rate = point.get("rows_out_per_s")
            if rate is None:  # for a source in a group with its readers, only what it reads is known
                rate = point.get("rows_in_per_s")
            if 0 <= index < length and rate is not None:
                steps.setdefault(index, []).append(float(rate))
        for index, rates in steps.items():
            sums[index] = (sums[index] or 0.0) + sum(rates) / len(rates)
    return [None if value is None else round(value, 2) for value in sums]


def _read(sources: list[tuple[str, str]]) -> list[list[Point]]:
    """Reads all lists in one request to Redis. Returns one list for each source. Without Redis, each list is
    empty."""
    client = redis.Redis.from_url(settings.FOGLINE.redis_url, socket_connect_timeout=1, socket_timeout=3)
    try:
        pipe = client.pipeline(transaction=False)
        for deployment, element in sources:
            pipe.lrange(keys.element_history(deployment, element), -POINTS_READ, -1)
        return [[json.loads(point) for point in raw] for raw in pipe.execute()]
    except redis.RedisError:
        return [[] for _ in sources]  # the page says elsewhere that Redis is away
    finally:
        client.close()
