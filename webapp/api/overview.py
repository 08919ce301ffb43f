from __future__ import annotations

from django.http import HttpRequest
from ninja import Query, Router

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.alarms.selectors import open_alarms
from webapp.api.authentication import actor
from webapp.backends.control_state import control_state
from webapp.monitoring import selectors
from webapp.monitoring.attention import attention
from webapp.monitoring.audit_log import audit_entries, people
from webapp.monitoring.board import whole_board
from webapp.monitoring.nodes import all_nodes
from webapp.monitoring.schemas import AuditEntry, LogEvent, Overview
from webapp.monitoring.throughput import throughputs
from webapp.policies.selectors import advice

router = Router(tags=["overview"])


@router.get("/overview", response=Overview)
def overview(request: HttpRequest) -> Overview:
    """`attention` lists what is wrong now; earlier problems are in the events. `throughput` is that of the
    deployed pipelines."""
    board, nodes = whole_board(), all_nodes()
    pipelines = [board.item(pipeline) for pipeline in board.pipelines]
    elements = {pipeline.name: board.elements(pipeline) for pipeline in board.pipelines}
    return {
        "pipelines": pipelines,
        "nodes": nodes,
        "attention": attention(nodes, pipelines, elements, control_state(), advice(), open_alarms()),
        "throughput": throughputs(board),
    }


@router.get("/events", response=list[LogEvent])
def events(
    request: HttpRequest,
    limit: int = Query(50, ge=1, le=1000),
    pipeline: str | None = None,
    node: str | None = None,
    severity: str | None = None,
    kind: str | None = None,
) -> list[LogEvent]:
    """Lists events, newest first. `kind` is the first word of the events' kinds, such as element or node."""
    return selectors.events(limit, pipeline, node, severity, kind)


@router.get("/audit", response=list[AuditEntry])
def audit(
    request: HttpRequest,
    limit: int = Query(50, ge=1, le=1000),
    pipeline: str | None = None,
    user: str | None = None,
    kind: str | None = None,
    fold: bool = False,
) -> list[AuditEntry]:
    """Lists who did what, newest first. `kind` is the first word of the actions, such as pipeline or node.

    With `fold`, the saves of one sitting are one entry, which says how many `times` and `since` when.
    """
    require(actor(request), Role.OPERATOR, "read the audit log")
    return audit_entries(limit, pipeline=pipeline, user=user, kind=kind, fold=fold)


@router.get("/audit/people", response=list[str])
def audit_people(request: HttpRequest) -> list[str]:
    """Lists the names of all people in the audit log."""
    require(actor(request), Role.OPERATOR, "read the audit log")
    return people()
