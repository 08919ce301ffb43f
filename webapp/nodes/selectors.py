"""Reading nodes: their JSON for the API and the live view."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db.models import QuerySet

from webapp.handovers.models import Handover
from webapp.monitoring.control_state import control_state
from webapp.nodes import schemas
from webapp.nodes.draining import drains_now
from webapp.nodes.models import Node
from webapp.nodes.schemas import DrainProgress, HostedElement
from webapp.pipelines.models import Deployment, ExtraReplica, GroupPlacement, Replica
from webapp.pipelines.shape import groups_of, names_of
from webapp.problems import Missing


def node_named(name: str) -> Node:
    node = Node.objects.filter(name=name).first()
    if node is None:
        raise Missing(
            f'There is no node "{name}".', next="See the list of nodes, or add one with an enrolment token."
        )
    return node


def all_nodes() -> list[schemas.Node]:
    """Every node as JSON, by name."""
    hosted: dict[int, list[HostedElement]] = {}
    # A document is parsed once, not once for each of its replicas.
    deployments = list(_active_deployments())
    groups, called = {row.pk: groups_of(row.version.document) for row in deployments}, _called(deployments)
    replicas = Replica.objects.filter(deployment__in=groups).defer("status", "rates")
    for replica in replicas.order_by("deployment__pipeline__name", "group"):
        pipeline, names = called[replica.deployment_id]
        for element in groups[replica.deployment_id].get(replica.group, ()):
            hosted.setdefault(replica.node_id, []).append(
                {
                    "pipeline": pipeline,
                    "element": element,
                    "title": names[element],
                    "group": replica.group,
                    "role": replica.role,
                }
            )
    needed, heard, nodes = removal_refusals(called), control_state().hears, list(Node.objects.all())
    drains = drains_now(nodes)
    return [
        node_json(node, hosted.get(node.pk, []), needed.get(node.name), heard, drains.get(node.name))
        for node in nodes
    ]


def _active_deployments() -> QuerySet[Deployment]:
    return Deployment.objects.filter(status__in=Deployment.ACTIVE).select_related("version", "pipeline")


Called = dict[str, tuple[str, dict[str, str]]]
"""By deployment: its pipeline's name, and what people call its elements and groups."""


def _called(deployments: Iterable[Deployment]) -> Called:
    return {row.pk: (row.pipeline.name, names_of(row.version.document)) for row in deployments}


def one_node(name: str) -> schemas.Node:
    node_named(name)
    return next(node for node in all_nodes() if node["name"] == name)


def removal_refusals(called: Called | None = None) -> dict[str, str]:
    """By node: why it cannot be removed now. One that is not in it can."""
    to_run: dict[str, list[str]] = {}
    active = _called(_active_deployments()) if called is None else called

    def name(deployment: str, group: str) -> str:
        pipeline, names = active.get(deployment, ("", {}))
        return f"{names.get(group, group)} of {pipeline}" if pipeline else group

    placed = GroupPlacement.objects.filter(deployment__in=active)
    for node, deployment, group in placed.values_list("node__name", "deployment", "group"):
        to_run.setdefault(node, []).append(name(deployment, group))
    found = {
        node: f"it is to run {', '.join(sorted(groups))}: drain it, or restore that elsewhere, first"
        for node, groups in to_run.items()
    }
    for handover in Handover.objects.filter(outcome__isnull=True):
        moving = name(handover.deployment_id, handover.group)
        for node in (handover.origin, handover.target):
            found.setdefault(node, f"{moving} is being moved from it or to it: wait until that has ended")
    # The origin's, of a move with a pause whose target does not own yet; a standby is only a convenience.
    kept = ExtraReplica.objects.filter(deployment__in=active).exclude(role="standby")
    for node, deployment, group in kept.values_list("node__name", "deployment", "group"):
        state = (
            f"it keeps the state of {name(deployment, group)}, perhaps the newest, until that runs elsewhere"
        )
        found.setdefault(node, f"{state}: wait for that, or restore it")
    return found


def node_json(
    node: Node,
    elements: list[HostedElement],
    needed: str | None,
    heard: bool,
    drain: DrainProgress | None,
) -> schemas.Node:
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
        "drain": drain,
    }
