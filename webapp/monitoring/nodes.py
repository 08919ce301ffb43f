"""Nodes as the dashboard shows them."""

from __future__ import annotations

from django.conf import settings

from pipeline_runtime.model.ids import document_group
from webapp.backends.control_state import control_state
from webapp.handovers.draining import drains_now
from webapp.handovers.node_removal import Needed, names_by_deployment, removal_refusals
from webapp.nodes import schemas
from webapp.nodes.models import Node
from webapp.nodes.schemas import DrainProgress, HostedElement
from webapp.nodes.selectors import node_named
from webapp.placements.models import Replica
from webapp.placements.selectors import active_deployments, elements_by_group


def all_nodes() -> list[schemas.Node]:
    """Returns every node as JSON, by name."""
    hosted: dict[int, list[HostedElement]] = {}
    # A document is parsed once, not for each of its replicas.
    called = names_by_deployment(list(active_deployments()))
    elements = elements_by_group(called)
    replicas = Replica.objects.filter(deployment__in=called).defer("status", "rates")
    for replica in replicas.order_by("deployment__pipeline__name", "group"):
        pipeline, _, names = called[replica.deployment_id]
        for element in elements.get((replica.deployment_id, replica.group), ()):
            hosted.setdefault(replica.node_id, []).append(
                {
                    "pipeline": pipeline,
                    "element": element,
                    "title": names.get(element, element),
                    "group": document_group(replica.group),
                    "role": replica.role,
                }
            )
    needed, heard, nodes = removal_refusals(called), control_state().hears, list(Node.objects.all())
    drains = drains_now(nodes)
    return [
        node_json(node, hosted.get(node.pk, []), needed.get(node.name), heard, drains.get(node.name))
        for node in nodes
    ]


def one_node(name: str) -> schemas.Node:
    node_named(name)
    return next(node for node in all_nodes() if node["name"] == name)


def node_json(
    node: Node,
    elements: list[HostedElement],
    needed: Needed | None,
    heard: bool,
    drain: DrainProgress | None,
) -> schemas.Node:
    return {
        "name": node.name,
        "up": node.up and heard,
        "heard": heard,  # when it is false, control hears no node and `up` is not known
        "ready": node.ready,
        "cordoned": node.cordoned,
        "draining": node.draining_since is not None,
        "draining_since": node.draining_since.isoformat() if node.draining_since else None,
        "drain_blocked": node.drain_blocked or None,
        "leaving_until": node.leaving_until.isoformat() if node.leaving_until else None,
        "maintenance_until": (
            node.maintenance_until.isoformat() if node.maintenance_until and node.in_maintenance else None
        ),
        "url": node.url,
        "version": node.version,
        "version_wanted": settings.FOGLINE_VERSION,
        "cores": node.cores,
        "site": node.site,
        "enrolled_at": node.enrolled_at.isoformat(),
        "last_seen_at": node.last_seen_at.isoformat() if node.last_seen_at else None,
        "silent_at": node.silent_at.isoformat() if node.silent_at else None,
        "alerts": node.alerts,
        "load": node.load or None,
        "elements": elements,
        "remove": {"allowed": needed is None, "reason": needed and needed.words, "note": None},
        "drain": drain,
    }
