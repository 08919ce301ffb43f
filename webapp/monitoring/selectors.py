"""Reads events and load histories."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from pipeline_runtime.wire import keys
from webapp.audit.models import Event
from webapp.backends.histories import points
from webapp.monitoring.schemas import ElementPoint, LogEvent
from webapp.nodes.schemas import NodePoint

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
        "cause": event.cause_id,
    }


def events(
    limit: int = RECENT,
    pipeline: str | None = None,
    node: str | None = None,
    severity: str | None = None,
    kind: str | None = None,
) -> list[LogEvent]:
    """Returns events, newest first. `kind` is the first word of the kinds, such as element."""
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
    found: list[Any] = points([key], POINTS_MAX, settings.FOGLINE.redis_url)[0]
    return found
