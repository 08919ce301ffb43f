"""Reading deployments and their groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import QuerySet

from pipeline_runtime.model.desired import JavaEnd
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.regroup import named
from webapp.pipelines.checking import planned
from webapp.pipelines.models import Pipeline
from webapp.pipelines.pins import with_pins_of
from webapp.pipelines.selectors import document_key
from webapp.placements.models import Deployment, GroupPlacement, Replica


def active_deployment(pipeline: Pipeline) -> Deployment | None:
    return (
        pipeline.deployments.filter(status__in=Deployment.ACTIVE)
        .select_related("version", "pipeline")
        .first()
    )


def active_deployments() -> QuerySet[Deployment]:
    return Deployment.objects.filter(status__in=Deployment.ACTIVE).select_related("version", "pipeline")


def specs_of(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """What its groups are to run, by group."""
    return tuple(GroupSpec.model_validate(p.spec) for p in deployment.placements.order_by("group"))


def elements_by_group(deployments: Collection[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """(deployment, group) -> the elements that run in it, or are to."""
    rows = GroupPlacement.objects.filter(deployment__in=deployments)
    found = rows.values_list("deployment_id", "group", "spec__elements")
    return {(id, group): tuple(each["id"] for each in elements) for id, group, elements in found}


def left_by(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """Groups as they were, each with the inputs that it has left and nobody has taken over since, and the
    elements that run nowhere since."""
    return tuple(_left(each) for each in deployment.left.values())


def _left(entry: Mapping[str, Any]) -> GroupSpec:
    spec, halted = GroupSpec.model_validate(entry["spec"]), entry.get("halted", ())
    return spec.model_copy(update={"elements": tuple(each for each in spec.elements if each.id in halted)})


def planned_for(deployment: Deployment, document: dict[str, Any]) -> tuple[GroupSpec, ...]:
    """What nodes run of a valid document in this deployment; raises DocumentInvalid."""
    placements = list(deployment.placements.order_by("group"))
    # What has ended, or is to, by an upgrade that has not come to its end, does not go on any more. A rewind
    # stops its group, too, for a moment.
    ending = set(deployment.replicas.filter(status__retired=True).values_list("group", flat=True))
    ending |= {
        placement.group
        for placement in placements
        if placement.retire or (placement.role != "owner" and placement.group in deployment.left)
    }
    running = [GroupSpec.model_validate(p.spec) for p in placements if p.group not in ending]
    specs = planned(parse_document(document), deployment.pk)
    return named(specs, running, {*deployment.gone, *ending})


def nodes_before(deployment: Deployment) -> dict[str, str]:
    """By element: where it runs, or ran until its group was ended by an upgrade that has not ended itself."""
    nodes = {id: entry["node"] for entry in deployment.left.values() for id in entry.get("halted", ())}
    for placement in deployment.placements.select_related("node"):
        nodes |= {element["id"]: placement.node.name for element in placement.spec["elements"]}
    return nodes


def is_what_runs(
    document: dict[str, Any], deployment: Deployment, groups: Collection[str] | None = None
) -> bool:
    """Whether deploying the document would change nothing. `groups`: those with a node; None: asked for."""
    if groups is None:
        placed = deployment.placements.values_list("group", flat=True)
        groups = {document_group(group) for group in placed}
    deployed = with_pins_of(document, deployment.version.document, groups)
    return document_key(document) == document_key(deployed)


def busy_nodes() -> set[str]:
    """Those that run a query: their Java is warm."""
    return set(Replica.objects.exclude(role="stopped").values_list("node__name", flat=True))


def java_ends(placement: GroupPlacement) -> tuple[JavaEnd, ...]:
    """When the group was starting or in a batch as its node's Java process ended, since a user vouched."""
    return tuple(JavaEnd.model_validate(end) for end in placement.java_ends)
