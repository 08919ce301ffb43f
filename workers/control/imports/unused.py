"""Finds out which stored bytes are still in use."""

from __future__ import annotations

from pipeline_runtime.model.spec import GroupSpec
from webapp.operations.models import CarriedState
from webapp.pipelines.models import DataFile
from webapp.placements.models import Deployment, GroupPlacement


def named_files() -> set[str]:
    """Returns the sha256s of what data files and carried states name, and of what groups read that run or may
    run again."""
    found = {sha for row in DataFile.objects.values_list("sha256", "table_sha256") for sha in row if sha}
    found |= set(CarriedState.objects.values_list("sha256", flat=True))
    active = GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE)
    specs = list(active.values_list("spec", flat=True))
    for left_over in Deployment.objects.filter(status__in=Deployment.ACTIVE).values_list(
        "left_over", flat=True
    ):
        specs += [entry["spec"] for entry in left_over.values()]
    return found.union(*(GroupSpec.model_validate(spec).files.values() for spec in specs))
