"""Finds which pipelines use an uploaded file, and deletes files."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast

from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.pipelines.imports import data_file
from webapp.pipelines.models import Pipeline, PipelineVersion, SavedTemplate
from webapp.pipelines.schemas import FileUse
from webapp.pipelines.selectors import uploads_of
from webapp.placements.models import Deployment
from webapp.placements.selectors import active_deployments
from webapp.problems import Conflict, Fault

TOLD_MAX = 10
Named = TypeVar("Named", bound=Model)


def uses_of_files(id: str = "") -> dict[str, list[FileUse]]:
    """Returns which deployments, drafts, templates and versions use each uploaded file, by its id. With an
    id, only rows that name it are read."""
    found: dict[str, list[FileUse]] = defaultdict(list)
    for deployment in active_deployments():
        for each in sorted(_read_by(deployment) | set(deployment.version.uploads)):
            use: FileUse = {
                "pipeline": deployment.pipeline.name,
                "where": "deployment",
                "version": deployment.version.number,
            }
            found[each].append(use)
    drafts = _naming(Pipeline.objects.all(), "draft", f"upload:{id}")
    for name, draft in drafts.values_list("name", "draft"):
        for each in sorted(uploads_of(draft)):
            found[each].append({"pipeline": name, "where": "draft", "version": None})
    templates = _naming(SavedTemplate.objects.all(), "document", f"upload:{id}")
    for title, document in templates.values_list("title", "document"):
        for each in sorted(uploads_of(document)):
            found[each].append({"pipeline": title, "where": "template", "version": None})
    versions = _naming(PipelineVersion.objects.exclude(uploads=[]), "uploads", id)
    rows = versions.order_by("pipeline__name", "-number").values_list("pipeline__name", "number", "uploads")
    for name, number, ids in rows:
        for each in ids:
            found[each].append({"pipeline": name, "where": "version", "version": number})
    return found


def _naming(rows: QuerySet[Named], field: str, text: str) -> QuerySet[Named]:
    """Returns the rows whose JSON has this text somewhere."""
    return rows.annotate(as_text=Cast(field, TextField())).filter(as_text__contains=text)


def _read_by(deployment: Deployment) -> set[str]:
    files = list(deployment.placements.values_list("spec__files", flat=True))
    files += [entry["spec"].get("files") for entry in deployment.left_over.values()]
    return {reference.removeprefix("upload:") for each in files for reference in each or ()}


@transaction.atomic
def delete_file(actor: User, id: str, *, force: bool = False) -> None:
    """Deletes an uploaded file. Control then removes its bytes, unless another file shares them.

    Refuses to delete a file that a deployment reads. Deletes a file that a draft or a version names only with
    `force`: a user must then choose another file before the draft or version can be deployed.
    """
    require(actor, Role.EDITOR, "delete files")
    file = data_file(id, for_update=True)
    uses = uses_of_files(id).get(id, [])
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
    if use["where"] == "template":
        return f"the template {use['pipeline']}"
    if use["where"] == "version":
        return f"version {use['version']} of {use['pipeline']}"
    return f"the deployment of {use['pipeline']}"


def _faults(uses: list[FileUse]) -> list[Fault]:
    return [
        {"element": None, "path": use["pipeline"], "message": _said(use), "code": "used"}
        for use in uses[:TOLD_MAX]
    ]
