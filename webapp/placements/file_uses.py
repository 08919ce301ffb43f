"""Which pipelines use an uploaded file, and its deletion."""

from __future__ import annotations

from collections import defaultdict

from django.db import transaction

from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.pipelines.imports import data_file
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.pipelines.schemas import FileUse
from webapp.pipelines.selectors import uploads_of
from webapp.placements.models import GroupPlacement
from webapp.placements.selectors import active_deployments
from webapp.problems import Conflict, Fault

TOLD_MAX = 10


def uses_of_files() -> dict[str, list[FileUse]]:
    """Returns which drafts, versions and deployments use each uploaded file, by its id."""
    found: dict[str, list[FileUse]] = defaultdict(list)
    for deployment in active_deployments():
        for id in sorted(_read_by(deployment.pk, deployment.left_over) | set(deployment.version.uploads)):
            use: FileUse = {
                "pipeline": deployment.pipeline.name,
                "where": "deployment",
                "version": deployment.version.number,
            }
            found[id].append(use)
    for name, draft in Pipeline.objects.values_list("name", "draft"):
        for id in sorted(uploads_of(draft)):
            found[id].append({"pipeline": name, "where": "draft", "version": None})
    versions = PipelineVersion.objects.exclude(uploads=[]).order_by("pipeline__name", "-number")
    for name, number, ids in versions.values_list("pipeline__name", "number", "uploads"):
        for id in ids:
            found[id].append({"pipeline": name, "where": "version", "version": number})
    return found


def _read_by(deployment: str, left_over: dict[str, dict[str, object]]) -> set[str]:
    specs = list(GroupPlacement.objects.filter(deployment=deployment).values_list("spec", flat=True))
    specs += [entry["spec"] for entry in left_over.values()]
    references = {reference for spec in specs for reference in GroupSpec.model_validate(spec).files}
    return {reference.removeprefix("upload:") for reference in references}


@transaction.atomic
def delete_file(actor: User, id: str, *, force: bool = False) -> None:
    """Deletes an uploaded file. Control then removes its bytes, unless another file shares them.

    What a deployment reads is never deleted. What a draft or a version names is deleted with `force`: they
    can then not be deployed before another file is chosen.
    """
    require(actor, Role.EDITOR, "delete files")
    file = data_file(id, for_update=True)
    uses = uses_of_files().get(id, [])
    running = [use for use in uses if use["where"] == "deployment"]
    if running:
        raise Conflict(
            f"{file.name} is read by what runs: {_listed(running)}.",
            safe="Nothing was deleted.",
            next="Undeploy it, or give its elements another file, and deploy.",
            faults=_faults(running),
        )
    if uses and not force:
        raise Conflict(
            f"{file.name} is used by {_listed(uses)}.",
            safe="Nothing was deleted.",
            next="Choose another file there. Or delete it all the same: they cannot be deployed then.",
            faults=_faults(uses),
        )
    audit(actor, "file.delete", file.name, id=id, sha256=file.sha256, uses=[_said(use) for use in uses])
    file.delete()
    commands.send(tasks.FILES)
    announce()


def _listed(uses: list[FileUse]) -> str:
    more = len(uses) - TOLD_MAX
    told = ", ".join(_said(use) for use in uses[:TOLD_MAX])
    return told + (f" and {more} more" if more > 0 else "")


def _said(use: FileUse) -> str:
    if use["where"] == "draft":
        return f"the draft of {use['pipeline']}"
    if use["where"] == "version":
        return f"version {use['version']} of {use['pipeline']}"
    return f"the deployment of {use['pipeline']}"


def _faults(uses: list[FileUse]) -> list[Fault]:
    return [
        {"element": None, "path": use["pipeline"], "message": _said(use), "code": "used"}
        for use in uses[:TOLD_MAX]
    ]
