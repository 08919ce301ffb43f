"""Writes the audit log and the events."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractUser

from webapp.audit.announcements import announce
from webapp.audit.models import AuditRecord, Event

EVENTS_KEPT = 20_000  # the audit log is kept for ever
EVENTS_PRUNED_EVERY = 500
NODE_SILENT = "node.silent"


def audit(actor: AbstractUser | None, action: str, target: str, **detail: Any) -> AuditRecord:
    """Writes a line of the audit log. Every action calls this in its transaction. `actor` is None for the
    system itself."""
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
    cause: int | None = None,
    **detail: Any,
) -> Event:
    """Writes an event. `cause` is the id of the event from which this one follows."""
    event = Event.objects.create(
        kind=kind,
        message=message,
        severity=severity,
        pipeline=pipeline,
        element=element,
        node=node,
        detail=detail,
        cause_id=cause,
    )
    announce()
    if event.pk % EVENTS_PRUNED_EVERY == 0:
        Event.objects.filter(pk__lte=event.pk - EVENTS_KEPT).delete()
    return event


def silence_of(node: str) -> int | None:
    """Returns the id of the event that told of a node's newest silence."""
    found = Event.objects.filter(kind=NODE_SILENT, node=node).values_list("pk", flat=True)
    return found.first()
