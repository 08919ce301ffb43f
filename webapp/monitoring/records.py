"""Writing the audit log and the events, and telling the open dashboards."""

from __future__ import annotations

import logging
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from pipeline_runtime.wire.keys import LIVE_GROUP
from webapp.accounts.models import User
from webapp.monitoring.messages import Announcement, Topic
from webapp.monitoring.models import AuditRecord, Event

EVENTS_KEPT = 20_000  # the audit log is kept for ever
EVENTS_PRUNED_EVERY = 500
log = logging.getLogger(__name__)


def audit(actor: User | None, action: str, target: str, **detail: Any) -> AuditRecord:
    """Part of every action's transaction. `actor` None: the system itself."""
    return AuditRecord.objects.create(
        user=actor,
        username=actor.username if actor else "system",
        action=action,
        target=target,
        detail=detail,
    )


def record_event(
    kind: str,
    message: str,
    *,
    severity: str = Event.Severity.INFO,
    pipeline: str | None = None,
    element: str | None = None,
    node: str | None = None,
    **detail: Any,
) -> Event:
    event = Event.objects.create(
        kind=kind,
        message=message,
        severity=severity,
        pipeline=pipeline,
        element=element,
        node=node,
        detail=detail,
    )
    announce("events", str(event.pk))
    if event.pk % EVENTS_PRUNED_EVERY == 0:
        Event.objects.filter(pk__lte=event.pk - EVENTS_KEPT).delete()
    return event


def announce(topic: Topic, key: str = "") -> None:
    """After commit, tell every open dashboard to look again: `key` is a pipeline's name or a row's id."""
    transaction.on_commit(lambda: _send(topic, key))


def _send(topic: Topic, key: str) -> None:
    message: Announcement = {"type": "live.changed", "topic": topic, "key": key}
    try:
        async_to_sync(get_channel_layer().group_send)(LIVE_GROUP, message)
    except OSError as error:
        # The change itself is committed; dashboards look again by themselves every few seconds.
        log.warning("Redis is away, dashboards are not told of %s %s: %s", topic, key, error)
    except Exception as error:
        from redis.exceptions import RedisError

        if not isinstance(error, RedisError):
            raise
        log.warning("Redis is away, dashboards are not told of %s %s: %s", topic, key, error)
