"""Reading deployments and their groups."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from pipeline_runtime.model.spec import GroupSpec
from webapp.pipelines.models import Pipeline
from webapp.pipelines.pins import with_pins_of
from webapp.pipelines.selectors import document_key
from webapp.placements.models import Deployment, Replica


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


def left_by(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """Groups as they were, each with the inputs that it has left and nobody has taken over since."""
    return tuple(GroupSpec.model_validate(each["spec"]) for each in deployment.left.values())


def is_what_runs(
    document: dict[str, Any], deployment: Deployment, groups: Collection[str] | None = None
) -> bool:
    """Whether deploying the document would change nothing. `groups`: those with a node; None: asked for."""
    if groups is None:
        groups = set(deployment.placements.values_list("group", flat=True))
    deployed = with_pins_of(document, deployment.version.document, groups)
    return document_key(document) == document_key(deployed)


def busy_nodes() -> set[str]:
    """Those that run a query: their Java is warm."""
    return set(Replica.objects.exclude(role="stopped").values_list("node__name", flat=True))
