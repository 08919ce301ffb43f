"""Changes pipelines: drafts and versions.

Each action, here and in the other apps, checks the permission, makes the change and writes the audit record.
After the commit it tells control and the open dashboards.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from pipeline_runtime.model.document import Metadata
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.pipelines.selectors import document_key, pipeline_named, uploads_of, version_of
from webapp.pipelines.shape import metadata_of
from webapp.pipelines.titles import name_from, title_of, titled
from webapp.problems import CORRECT, Conflict, Fault, Invalid


@transaction.atomic
def create_pipeline(
    actor: User,
    name: str | None,
    document: dict[str, Any] | None = None,
    *,
    title: str = "",
    action: str = "pipeline.create",
) -> Pipeline:
    """Creates a pipeline. Without `name`, the pipeline gets a name that is made of its title. If `document`
    has another name, it is replaced. `action` is the entry in the audit log."""
    require(actor, Role.EDITOR, "create pipelines")
    if name is None:
        name = _fresh_name(title)
    check_name(name)
    draft = document or {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {"elements": []},
    }
    if title:
        draft = titled(named(draft, name), title)
    _check_draft(name, draft)
    if Pipeline.objects.filter(name=name).exists():
        raise Conflict(f'A pipeline "{name}" exists already.', next="Choose another name.")
    pipeline = Pipeline.objects.create(name=name, draft=draft, updated_by=actor)
    audit(actor, action, name)
    announce()
    return pipeline


def _fresh_name(title: str) -> str:
    """Returns a name for a new pipeline with the title `title`. Raises Conflict if a pipeline already has
    this title."""
    there = Pipeline.objects.only("name", "draft")
    if any(title.lower() == (title_of(pipeline.draft) or pipeline.name).lower() for pipeline in there):
        raise Conflict(f'A pipeline "{title}" exists already.', next="Choose another name.")
    return name_from(title, {pipeline.name for pipeline in there})


@transaction.atomic
def save_draft(actor: User, name: str, document: dict[str, Any], revision: int) -> Pipeline:
    """Replaces the draft that had `revision`. Raises Conflict with both documents if the draft has another
    revision by now, so no change is lost."""
    require(actor, Role.EDITOR, "edit pipelines")
    pipeline = pipeline_named(name, for_update=True)
    _check_draft(name, document)
    if pipeline.draft_revision != revision:
        raise Conflict(
            overtaken(pipeline, revision),
            safe="Both versions are in this answer; the saved one is unchanged.",
            next=f'Merge them and save with If-Match: "{pipeline.draft_revision}".',
            code="draft-overtaken",
            yours=document,
            theirs=pipeline.draft,
            revision=pipeline.draft_revision,
        )
    if pipeline.draft != document:
        set_draft(actor, pipeline, document)
        audit(actor, "pipeline.save", name, revision=pipeline.draft_revision)
        announce()
    return pipeline


def set_draft(actor: User | None, pipeline: Pipeline, document: dict[str, Any]) -> None:
    """Makes this document the draft, with the next revision, and saves it. `actor` is None if control itself
    does it."""
    pipeline.draft = document
    pipeline.draft_revision += 1
    pipeline.updated_by = actor
    pipeline.save()


def overtaken(pipeline: Pipeline, revision: int) -> str:
    """Returns a sentence that names who has changed the draft since `revision`."""
    by = pipeline.updated_by.username if pipeline.updated_by else "somebody"
    return (
        f'"{pipeline.title}" was changed by {by} meanwhile: it is at revision {pipeline.draft_revision}, '
        f"yours is {revision}."
    )


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the same document under another name."""
    return {**document, "metadata": {**metadata_of(document), "name": name}}


@transaction.atomic
def save_version(actor: User, name: str, note: str = "") -> PipelineVersion:
    """Saves the draft as a version. Returns the newest version if its document is the same."""
    require(actor, Role.EDITOR, "save versions")
    pipeline = pipeline_named(name, for_update=True)
    return snapshot(actor, pipeline, note)


@transaction.atomic
def restore_version(actor: User, name: str, number: int) -> Pipeline:
    """Makes an old version's document the draft. The draft that it replaces becomes a version."""
    require(actor, Role.EDITOR, "restore versions")
    pipeline = pipeline_named(name, for_update=True)
    version = version_of(pipeline, number)
    if document_key(pipeline.draft) != document_key(version.document):
        snapshot(actor, pipeline, f"before version {number} was restored")
    set_draft(actor, pipeline, version.document)
    audit(actor, "pipeline.restore_version", name, version=number)
    announce()
    return pipeline


def snapshot(actor: User | None, pipeline: Pipeline, note: str) -> PipelineVersion:
    """Saves the draft as a version. Returns the newest version if its document is the same."""
    newest = pipeline.versions.first()
    if newest is not None and newest.document == pipeline.draft:
        return newest
    version = PipelineVersion.objects.create(
        pipeline=pipeline,
        number=newest.number + 1 if newest else 1,
        document=pipeline.draft,
        uploads=sorted(uploads_of(pipeline.draft)),
        note=note,
        created_by=actor,
    )
    audit(actor, "pipeline.version", pipeline.name, version=version.number, note=note)
    return version


def check_name(name: str) -> None:
    """Raises Invalid if a pipeline cannot have this id."""
    try:
        Metadata(name=name)
    except ValueError:
        message = "up to 40 lower-case letters, digits and hyphens; it starts and ends with a letter or digit"
        fault: Fault = {"element": None, "path": "name", "message": message, "code": "invalid"}
        raise Invalid(
            f'"{name[:60]}" is not a name for a pipeline.',
            safe="Nothing was changed.",
            next=f"Choose another name: {message}.",
            faults=[fault],
        ) from None


def _check_draft(name: str, document: dict[str, Any]) -> None:
    """Checks that a draft belongs to this pipeline and that the editor can draw it. The draft may have other
    faults."""
    called = metadata_of(document).get("name")
    faults = []
    if called != name:
        message = f'the document is called "{called}", the pipeline "{name}"'
        faults.append({"element": None, "path": "metadata.name", "message": message, "code": "name"})
    spec = document.get("spec", {})
    for key in ("elements", "groups", "notes"):
        items = spec.get(key, []) if isinstance(spec, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            message = "must be a list of objects"
            faults.append({"element": None, "path": f"spec.{key}", "message": message, "code": "invalid"})
    if faults:
        raise Invalid(
            "This is not a draft of this pipeline.", safe="Nothing was saved.", next=CORRECT, faults=faults
        )
