"""Reads the lists of JSON points that control keeps in Redis."""

from __future__ import annotations

import json
from typing import Any

import redis

from webapp.problems import BackendAway


def points(keys: list[str], newest: int, redis_url: str) -> list[list[dict[str, Any]]]:
    """Returns the newest points {"t", ...} of each key, oldest first. Raises BackendAway."""
    client = redis.Redis.from_url(redis_url, socket_connect_timeout=1, socket_timeout=3)
    try:
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.lrange(key, -newest, -1)
        raw = pipe.execute()
    except redis.RedisError as error:
        raise BackendAway(
            f"Redis, which keeps the histories, does not answer: {error}.",
            safe="Running pipelines are not affected.",
            next="Check that Redis runs, then try again.",
        ) from error
    finally:
        client.close()
    found = [[json.loads(item) for item in items] for items in raw]
    # Readers get them oldest first, whichever end the writer pushes to.
    return [sorted(each, key=lambda point: point.get("t") or 0) for each in found]
