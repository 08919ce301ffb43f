"""Reads deployments and their groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Max, QuerySet, Sum

from pipeline_runtime.model.desired import JavaEnd, held_error, is_held
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.regroup import named
from webapp.pipelines.checking import planned
from webapp.pipelines.models import Pipeline
from webapp.pipelines.pins import with_pins_of
from webapp.pipelines.selectors import document_key
from webapp.placements.models import (
    ConnectorGaps,
    ConnectorTrouble,
    Deployment,
    GroupPlacement,
    Replica,
)


def active_deployment(pipeline: Pipeline) -> Deployment | None:
    """Returns the deployment that runs, starts or ends now, or None."""
    return (
        pipeline.deployments.filter(status__in=Deployment.ACTIVE)
        .select_related("version", "pipeline")
        .first()
    )


def active_deployments() -> QuerySet[Deployment]:
    return Deployment.objects.filter(status__in=Deployment.ACTIVE).select_related("version", "pipeline")


def specs_of(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """Returns what its groups have to run, by group."""
    return tuple(GroupSpec.model_validate(p.spec) for p in deployment.placements.order_by("group"))


def elements_by_group(deployments: Collection[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns (deployment, group) -> the elements that run in it, or will run in it."""
    rows = GroupPlacement.objects.filter(deployment__in=deployments)
    found = rows.values_list("deployment_id", "group", "spec__elements")
    return {(id, group): tuple(each["id"] for each in elements) for id, group, elements in found}


def left_over_of(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """Returns groups as they were, each with the inputs that it stopped reading and that no group has taken
    over since, and with the elements that run nowhere since."""
    return tuple(_left(each) for each in deployment.left_over.values())


def _left(entry: Mapping[str, Any]) -> GroupSpec:
    spec, halted = GroupSpec.model_validate(entry["spec"]), entry.get("halted", ())
    return spec.model_copy(update={"elements": tuple(each for each in spec.elements if each.id in halted)})


def planned_for(deployment: Deployment, document: dict[str, Any]) -> tuple[GroupSpec, ...]:
    """Returns what nodes run for a valid document in this deployment. Raises DocumentInvalid."""
    placements = list(deployment.placements.order_by("group"))
    # A group that an unfinished upgrade has ended, or will end, does not go on. A rewind stops its group for
    # a moment, too.
    ending = set(deployment.replicas.filter(status__retired=True).values_list("group", flat=True))
    ending |= {
        placement.group
        for placement in placements
        if placement.retire or (placement.role != "owner" and placement.group in deployment.left_over)
    }
    running = [GroupSpec.model_validate(p.spec) for p in placements if p.group not in ending]
    specs = planned(parse_document(document), deployment.pk)
    return named(specs, running, {*deployment.gone, *ending})


def nodes_before(deployment: Deployment) -> dict[str, str]:
    """Returns element -> where it runs, or ran until an unfinished upgrade ended its group."""
    nodes = {id: entry["node"] for entry in deployment.left_over.values() for id in entry.get("halted", ())}
    for placement in deployment.placements.select_related("node"):
        nodes |= {element["id"]: placement.node.name for element in placement.spec["elements"]}
    return nodes


def is_what_runs(
    document: dict[str, Any], deployment: Deployment, groups: Collection[str] | None = None
) -> bool:
    """Returns whether deploying the document would change nothing. `groups` are those with a node; without
    them they are read."""
    if groups is None:
        placed = deployment.placements.values_list("group", flat=True)
        groups = {document_group(group) for group in placed}
    deployed = with_pins_of(document, deployment.version.document, groups)
    return document_key(document) == document_key(deployed)


def busy_nodes() -> set[str]:
    """Returns the nodes that run a query. Their Java is warm."""
    return set(Replica.objects.exclude(role="stopped").values_list("node__name", flat=True))


def held(placement: GroupPlacement) -> dict[str, Any] | None:
    """Returns why the group is not started on any node (ReplicaError), or None if it is."""
    ends = java_ends(placement)
    return held_error(ends).model_dump(mode="json") if is_held(ends) else None


def java_ends(placement: GroupPlacement) -> tuple[JavaEnd, ...]:
    """Returns the ends of nodes' Java processes while the group was starting or in a batch, since a user last
    vouched for it."""
    return tuple(JavaEnd.model_validate(end) for end in placement.java_ends)


class Gaps(NamedTuple):
    """What an element's connectors have lost, by all counters of all nodes together."""

    times: int
    rows: int
    at: datetime
    """when control heard of the newest gap"""


def gaps_by_element(deployments: Collection[str]) -> dict[tuple[str, str], Gaps]:
    """Returns (deployment, element) -> its gaps, if it has any."""
    rows = ConnectorGaps.objects.filter(deployment__in=deployments).order_by()
    counts = rows.values_list("deployment", "element").annotate(Sum("times"), Sum("rows"), Max("at"))
    return {(deployment, element): Gaps(*counted) for deployment, element, *counted in counts}


def troubles_by_element(deployments: Collection[str]) -> dict[tuple[str, str], ConnectorTrouble]:
    """Returns (deployment, element) -> what people were told last of its connector, if that has failed."""
    rows = ConnectorTrouble.objects.filter(deployment__in=deployments)
    return {(row.deployment_id, row.element): row for row in rows}
