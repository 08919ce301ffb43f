"""Reading nodes: their JSON for the API and the live view."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, Replica
from webapp.pipelines.shape import groups_of
from webapp.problems import Missing


def node_named(name: str) -> Node:
    node = Node.objects.filter(name=name).first()
    if node is None:
        raise Missing(
            f'There is no node "{name}".', next="See the list of nodes, or add one with an enrolment token."
        )
    return node


def all_nodes() -> list[dict[str, Any]]:
    """Every node as JSON, by name."""
    hosted: dict[int, list[dict[str, Any]]] = {}
    deployments = Deployment.objects.filter(status__in=Deployment.ACTIVE).select_related(
        "version", "pipeline"
    )
    # A document is parsed once, not once for each of its replicas.
    groups = {row.pk: (row.pipeline.name, groups_of(row.version.document)) for row in deployments}
    replicas = Replica.objects.filter(deployment__in=groups).defer("status", "rates")
    for replica in replicas.order_by("deployment__pipeline__name", "group"):
        pipeline, elements = groups[replica.deployment_id]
        for element in elements.get(replica.group, ()):
            hosted.setdefault(replica.node_id, []).append(
                {"pipeline": pipeline, "element": element, "group": replica.group, "role": replica.role}
            )
    return [node_json(node, hosted.get(node.pk, [])) for node in Node.objects.all()]


def one_node(name: str) -> dict[str, Any]:
    node_named(name)
    return next(node for node in all_nodes() if node["name"] == name)


def node_json(node: Node, elements: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": node.name,
        "up": node.up,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "draining": node.draining_since is not None,
        "draining_since": node.draining_since.isoformat() if node.draining_since else None,
        "drain_blocked": node.drain_blocked or None,
        "url": node.url,
        "version": node.version,
        "version_wanted": settings.FOGLINE_VERSION,
        "cores": node.cores,
        "labels": node.labels,
        "enrolled_at": node.enrolled_at.isoformat(),
        "last_seen_at": node.last_seen_at.isoformat() if node.last_seen_at else None,
        "silent_at": node.silent_at.isoformat() if node.silent_at else None,
        "alerts": node.alerts,
        "load": node.load or None,
        "elements": elements,
    }
