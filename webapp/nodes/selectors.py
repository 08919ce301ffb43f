"""Reading nodes: their JSON for the API and the live view."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from webapp.handovers.models import Handover
from webapp.monitoring.control_state import control_state
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, ExtraReplica, GroupPlacement, Replica
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
    needed, heard = removal_refusals(), control_state().hears
    return [
        node_json(node, hosted.get(node.pk, []), needed.get(node.name), heard) for node in Node.objects.all()
    ]


def one_node(name: str) -> dict[str, Any]:
    node_named(name)
    return next(node for node in all_nodes() if node["name"] == name)


def removal_refusals() -> dict[str, str]:
    """By node: why it cannot be removed now. One that is not in it can."""
    to_run: dict[str, list[str]] = {}
    placed = GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE)
    for node, pipeline, group in placed.values_list("node__name", "deployment__pipeline__name", "group"):
        to_run.setdefault(node, []).append(f"{pipeline}/{group}")
    found = {
        node: f"it is to run {', '.join(sorted(groups))}: drain it, or restore that elsewhere, first"
        for node, groups in to_run.items()
    }
    for handover in Handover.objects.filter(outcome__isnull=True).select_related("deployment__pipeline"):
        moving = f"{handover.deployment.pipeline.name}/{handover.group}"
        for node in (handover.origin, handover.target):
            found.setdefault(node, f"{moving} is being moved from it or to it: wait until that has ended")
    # The origin's, of a move with a pause whose target does not own yet; a standby is only a convenience.
    kept = ExtraReplica.objects.filter(deployment__status__in=Deployment.ACTIVE).exclude(role="standby")
    for node, pipeline, group in kept.values_list("node__name", "deployment__pipeline__name", "group"):
        state = f"it keeps the state of {pipeline}/{group}, perhaps the newest, until that runs elsewhere"
        found.setdefault(node, f"{state}: wait for that, or restore it")
    return found


def node_json(node: Node, elements: list[dict[str, Any]], needed: str | None, heard: bool) -> dict[str, Any]:
    return {
        "name": node.name,
        "up": node.up and heard,
        "heard": heard,  # False: control hears nobody, so `up` is not known
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
        "remove": {"allowed": needed is None, "reason": needed, "note": None},
    }
