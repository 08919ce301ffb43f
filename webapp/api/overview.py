from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.authentication import actor
from webapp.monitoring import selectors
from webapp.nodes.selectors import all_nodes
from webapp.pipelines.selectors import all_pipelines

router = Router(tags=["overview"])


@router.get("/overview")
def overview(request: HttpRequest) -> Any:
    return {"pipelines": all_pipelines(), "nodes": all_nodes(), "attention": selectors.attention()}


@router.get("/events")
def events(
    request: HttpRequest,
    limit: int = Query(50, ge=1, le=1000),
    pipeline: str | None = None,
    node: str | None = None,
    severity: str | None = None,
) -> Any:
    return selectors.events(limit, pipeline, node, severity)


@router.get("/audit")
def audit(request: HttpRequest, limit: int = Query(50, ge=1, le=1000)) -> Any:
    """Who did what; newest first."""
    require(actor(request), Role.OPERATOR, "read the audit log")
    return selectors.audit_records(limit)
