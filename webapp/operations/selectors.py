"""Reads operations as JSON."""

from __future__ import annotations

from webapp.handovers.selectors import DRAFT, recent
from webapp.operations import schemas
from webapp.operations.models import Operation
from webapp.problems import Missing


def operation_json(operation: Operation) -> schemas.Operation:
    return {
        "id": str(operation.pk),
        "kind": operation.kind,
        "pipeline": operation.deployment.pipeline.name,
        "deployment": operation.deployment_id,
        "status": operation.status,
        "steps": operation.steps,
        "phase": operation.phase,
        "phase_since": operation.phase_since.isoformat() if operation.phase_since else None,
        "waits_for": operation.waits_for,
        "deadline": operation.deadline.isoformat() if operation.deadline else None,
        "reason": operation.reason,
        "message": operation.message,
        "code": operation.code,
        "faults": operation.faults,
        "undelivered": [
            {
                "element": each["element"],
                "title": each["title"],
                "rows": each["rows"],
                "estimated": each["estimated"],
                "why": each["why"],
                "unread": each["unread"],
            }
            for each in operation.undelivered
            if each["rows"] != 0
        ],
        "hurry": operation.hurry,
        "again": operation.again,
        "next": str(operation.next_id) if operation.next_id else None,
        "created_at": operation.created_at.isoformat(),
        "ended_at": operation.ended_at.isoformat() if operation.ended_at else None,
    }


def recent_operations() -> list[schemas.Operation]:
    rows = Operation.objects.select_related("deployment__pipeline").defer(DRAFT)
    return [operation_json(row) for row in recent(rows)]


def operation_with(id: str) -> Operation:
    operation = Operation.objects.select_related("deployment__pipeline").filter(pk=id).first()
    if operation is None:
        raise Missing(f"There is no operation {id}.", next="See the operations of the pipeline.")
    return operation
