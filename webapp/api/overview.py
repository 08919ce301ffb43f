from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.authentication import actor
from webapp.monitoring import selectors
from webapp.monitoring.attention import attention
from webapp.monitoring.control_state import control_state
from webapp.nodes.selectors import all_nodes
from webapp.pipelines.selectors import whole_board

router = Router(tags=["overview"])


@router.get("/overview")
def overview(request: HttpRequest) -> Any:
    """`attention`: what is the matter now. What was, is in the events."""
    board, nodes = whole_board(), all_nodes()
    pipelines = [board.item(pipeline) for pipeline in board.pipelines]
    elements = {pipeline.name: board.elements(pipeline) for pipeline in board.pipelines}
    return {
        "pipelines": pipelines,
        "nodes": nodes,
        "attention": attention(nodes, pipelines, elements, control_state()),
    }


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
