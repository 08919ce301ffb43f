"""Changes to a pipeline that are only allowed while no part of it is deployed."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.pipelines.actions import check_name, named, overtaken, restore_version, set_draft
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.pipelines.schemas import ImportedPipeline
from webapp.pipelines.selectors import pipeline_named
from webapp.placements.selectors import active_deployment
from webapp.problems import Conflict


@transaction.atomic
def rename_pipeline(actor: User, name: str, new_name: str) -> Pipeline:
    """Renames the pipeline with its draft, its versions and everything that belongs to it. Refuses while the
    pipeline is deployed."""
    require(actor, Role.EDITOR, "rename pipelines")
    check_name(new_name)
    pipeline = pipeline_named(name, for_update=True)
    if active_deployment(pipeline) is not None:
        raise Conflict(
            f'"{pipeline.title}" is deployed, and the running pipeline uses its name.',
            safe="Nothing was renamed.",
            next="Undeploy it first, or duplicate it under the new name.",
        )
    if Pipeline.objects.filter(name=new_name).exclude(pk=pipeline.pk).exists():
        raise Conflict(
            f'A pipeline "{new_name}" exists already.',
            safe="Nothing was renamed.",
            next="Choose another name.",
        )
    versions = list(pipeline.versions.all())
    for version in versions:
        version.document = named(version.document, new_name)
    PipelineVersion.objects.bulk_update(versions, ["document"])
    pipeline.name = new_name
    set_draft(actor, pipeline, named(pipeline.draft, new_name))
    audit(actor, "pipeline.rename", new_name, before=name)
    announce()
    return pipeline


@transaction.atomic
def delete_pipeline(actor: User, name: str) -> None:
    require(actor, Role.EDITOR, "delete pipelines")
    pipeline = pipeline_named(name, for_update=True)
    if active_deployment(pipeline) is not None:
        raise Conflict(
            f'"{pipeline.title}" is deployed.',
            safe="Nothing was deleted.",
            next="Undeploy it first, then delete it.",
        )
    audit(actor, "pipeline.delete", name, document=pipeline.draft)
    pipeline.delete()
    announce()


@transaction.atomic
def undo_import(actor: User, imported: Iterable[ImportedPipeline]) -> None:
    """Deletes the pipelines that an import made, and restores the drafts that it replaced: all or none.
    Refuses if somebody has changed or deployed one of them since."""
    require(actor, Role.EDITOR, "undo an import")
    for each in imported:
        pipeline = pipeline_named(each["name"], for_update=True)
        if pipeline.draft_revision != each["revision"]:
            raise Conflict(
                overtaken(pipeline, each["revision"]),
                safe="Nothing was undone.",
                next="Delete the imported pipelines one by one, or restore their versions in the editor.",
            )
        if each["version"] is None:
            delete_pipeline(actor, each["name"])
        else:
            restore_version(actor, each["name"], each["version"])
