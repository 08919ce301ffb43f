"""Responses about what is and was the matter, and who did what."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from webapp.nodes.schemas import Node
from webapp.pipelines.schemas import PipelineItem, Throughput

Severity = Literal["info", "warning", "error"]


class AttentionLine(TypedDict):
    at: str | None
    """null: since when is not known"""
    severity: Severity
    kind: str
    pipeline: str | None
    element: str | None
    node: str | None
    message: str


class LogEvent(TypedDict):
    id: int
    at: str
    severity: Severity
    kind: str
    pipeline: str | None
    element: str | None
    node: str | None
    message: str
    detail: Any


class AuditEntry(TypedDict):
    id: int
    at: str
    since: str
    """of the first of `times` entries that this one stands for"""
    times: int
    user: str
    action: str
    target: str
    detail: Any


class Overview(TypedDict):
    pipelines: list[PipelineItem]
    nodes: list[Node]
    attention: list[AttentionLine]
    throughput: dict[str, Throughput]
