"""Reading events and load histories."""

from __future__ import annotations

import json
from typing import Any

import redis
from django.conf import settings

from pipeline_runtime.wire import keys
from webapp.audit.models import Event
from webapp.monitoring.schemas import ElementPoint, LogEvent
from webapp.nodes.schemas import NodePoint
from webapp.problems import BackendAway

RECENT = 50
POINTS_MAX = 2000


def event_json(event: Event) -> LogEvent:
    return {
        "id": event.pk,
        "at": event.at.isoformat(),
        "severity": event.severity,
        "kind": event.kind,
        "pipeline": event.pipeline,
        "element": event.element,
        "node": event.node,
        "message": event.message,
        "detail": event.detail,
    }


def events(
    limit: int = RECENT,
    pipeline: str | None = None,
    node: str | None = None,
    severity: str | None = None,
    kind: str | None = None,
) -> list[LogEvent]:
    """The newest first. `kind`: the first word of the kinds, such as element."""
    rows = Event.objects.all()
    for name, value in (("pipeline", pipeline), ("node", node), ("severity", severity)):
        if value is not None:
            rows = rows.filter(**{name: value})
    if kind is not None:
        rows = rows.filter(kind__startswith=f"{kind}.")
    return [event_json(row) for row in rows[:limit]]


def node_history(name: str) -> list[NodePoint]:
    return _points(keys.node_history(name))


def element_history(deployment: str, element: str) -> list[ElementPoint]:
    return _points(keys.element_history(deployment, element))


def _points(key: str) -> list[Any]:
    """JSON points {"t", ...}, oldest first, of a Redis list."""
    client = redis.Redis.from_url(settings.FOGLINE.redis_url, socket_connect_timeout=1, socket_timeout=3)
    try:
        raw = client.lrange(key, -POINTS_MAX, -1)
    except redis.RedisError as error:
        raise BackendAway(
            f"Redis, which keeps the histories, does not answer: {error}.",
            safe="Running pipelines are not affected.",
        ) from error
    finally:
        client.close()
    points: list[dict[str, Any]] = [json.loads(item) for item in raw]
    # Whichever end the writer pushes to, readers get them oldest first.
    return sorted(points, key=lambda point: point.get("t") or 0)
