"""Changes of pipelines: draft, versions, deployment, pause, checkpoint.

Each action checks the permission, changes, writes the audit record, and tells the control side and
the open dashboards after commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from pipeline_runtime.model.document import Metadata, parse_document
from pipeline_runtime.planning.upgrade import ElementChange
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.config import celery
from webapp.handovers.models import Operation
from webapp.monitoring.records import announce, audit
from webapp.nodes.models import Node
from webapp.pipelines.checking import check, planned
from webapp.pipelines.group_state import GroupFacts, checkpoint_refusal, pause_refusal, resume_refusal
from webapp.pipelines.models import Deployment, GroupPlacement, Pipeline, PipelineVersion
from webapp.pipelines.placing import first_placement
from webapp.pipelines.schemas import DeployChange, DeployPlan
from webapp.pipelines.selectors import (
    active_deployment,
    document_key,
    group_facts,
    is_what_runs,
    pipeline_named,
    version_of,
)
from webapp.pipelines.shape import element_of, elements_of, group_of, is_view, names_of
from webapp.pipelines.upgrades import refuse_upgrade, upgrade_changes
from webapp.problems import Conflict, Fault, Invalid, Missing


@transaction.atomic
def create_pipeline(actor: User, name: str, document: dict[str, Any] | None = None) -> Pipeline:
    require(actor, Role.EDITOR, "create pipelines")
    _check_name(name)
    draft = document or {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {"elements": []},
    }
    _check_draft(name, draft)
    if Pipeline.objects.filter(name=name).exists():
        raise Conflict(f'There is a pipeline "{name}" already.', next="Choose another name.")
    pipeline = Pipeline.objects.create(name=name, draft=draft, updated_by=actor)
    audit(actor, "pipeline.create", name)
    announce("pipelines", name)
    return pipeline


@transaction.atomic
def save_draft(actor: User, name: str, document: dict[str, Any], revision: int) -> Pipeline:
    """Replace the draft that had `revision`. Conflict carries both documents; none is lost."""
    require(actor, Role.EDITOR, "edit pipelines")
    pipeline = pipeline_named(name, for_update=True)
    _check_draft(name, document)
    if pipeline.draft_revision != revision:
        raise Conflict(
            _overtaken(pipeline, revision),
            safe="Both versions are in this answer; the saved one is unchanged.",
            next=f'Merge them and save with If-Match: "{pipeline.draft_revision}".',
            yours=document,
            theirs=pipeline.draft,
            revision=pipeline.draft_revision,
        )
    if pipeline.draft != document:
        pipeline.draft = document
        pipeline.draft_revision += 1
        pipeline.updated_by = actor
        pipeline.save()
        audit(actor, "pipeline.save", name, revision=pipeline.draft_revision)
        announce("pipelines", name)
    return pipeline


def _overtaken(pipeline: Pipeline, revision: int) -> str:
    by = pipeline.updated_by.username if pipeline.updated_by else "somebody"
    return (
        f'"{pipeline.name}" was changed by {by} meanwhile: it is at revision {pipeline.draft_revision}, '
        f"yours is {revision}."
    )


@transaction.atomic
def rename_pipeline(actor: User, name: str, new_name: str) -> Pipeline:
    """With its draft, its versions and all that hangs on it; not while it is deployed."""
    require(actor, Role.EDITOR, "rename pipelines")
    _check_name(new_name)
    pipeline = pipeline_named(name, for_update=True)
    if active_deployment(pipeline) is not None:
        raise Conflict(
            f'"{name}" is deployed, and its name is in use by what runs.',
            safe="Nothing was renamed.",
            next="Undeploy it first, or duplicate it under the new name.",
        )
    if Pipeline.objects.filter(name=new_name).exclude(pk=pipeline.pk).exists():
        raise Conflict(
            f'There is a pipeline "{new_name}" already.',
            safe="Nothing was renamed.",
            next="Choose another name.",
        )
    versions = list(pipeline.versions.all())
    for version in versions:
        version.document = named(version.document, new_name)
    PipelineVersion.objects.bulk_update(versions, ["document"])
    pipeline.name, pipeline.draft = new_name, named(pipeline.draft, new_name)
    pipeline.draft_revision += 1
    pipeline.updated_by = actor
    pipeline.save()
    audit(actor, "pipeline.rename", new_name, before=name)
    announce("pipelines", name)
    announce("pipelines", new_name)
    return pipeline


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The same document under another name."""
    metadata = document.get("metadata")
    return {**document, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "name": name}}


@transaction.atomic
def delete_pipeline(actor: User, name: str) -> None:
    require(actor, Role.EDITOR, "delete pipelines")
    pipeline = pipeline_named(name, for_update=True)
    if active_deployment(pipeline) is not None:
        raise Conflict(
            f'"{name}" is deployed.', safe="Nothing was deleted.", next="Undeploy it first, then delete it."
        )
    audit(actor, "pipeline.delete", name, document=pipeline.draft)
    pipeline.delete()
    announce("pipelines", name)


@transaction.atomic
def save_version(actor: User, name: str, note: str = "") -> PipelineVersion:
    """Snapshot the draft; when it is the newest version's document already, that version."""
    require(actor, Role.EDITOR, "save versions")
    pipeline = pipeline_named(name, for_update=True)
    return _snapshot(actor, pipeline, note)


@transaction.atomic
def restore_version(actor: User, name: str, number: int) -> Pipeline:
    """Make an old version's document the draft. The draft that it replaces becomes a version."""
    require(actor, Role.EDITOR, "restore versions")
    pipeline = pipeline_named(name, for_update=True)
    version = version_of(pipeline, number)
    if document_key(pipeline.draft) != document_key(version.document):
        _snapshot(actor, pipeline, f"before version {number} was restored")
    pipeline.draft = version.document
    pipeline.draft_revision += 1
    pipeline.updated_by = actor
    pipeline.save()
    audit(actor, "pipeline.restore_version", name, version=number)
    announce("pipelines", name)
    return pipeline


@transaction.atomic
def deploy(
    actor: User,
    name: str,
    version: int | None = None,
    placement: dict[str, str] | None = None,
    revision: int | None = None,
    restart: Collection[str] = (),
) -> Operation:
    """Deploy a version, or the draft as a new one. Exactly one deployment per pipeline at a time: one that
    runs is upgraded in place, when its graph and its state allow that. `revision`: of the draft that the user
    has seen; Conflict when it is another by now. `restart`: elements that may lose their state, when what is
    deployed cannot go on from it."""
    require(actor, Role.EDITOR, "deploy pipelines")
    pipeline = pipeline_named(name, for_update=True)
    if revision is not None and pipeline.draft_revision != revision:
        raise Conflict(
            _overtaken(pipeline, revision),
            safe="Nothing was deployed.",
            next="Look at the draft as it is now, then deploy again.",
        )
    running = active_deployment(pipeline)
    if running is not None and running.status == Deployment.Status.RUNNING:
        return _upgrade(actor, running, version, placement or {}, restart)
    if running is not None:
        raise Conflict(
            f'"{name}" is {running.status} already (version {running.version.number}).',
            safe="What runs goes on unchanged.",
            next="Undeploy it before you deploy another version.",
            deployment=running.pk,
        )
    _valid_document(pipeline, version, placement or {})
    chosen = _chosen_version(actor, pipeline, version)
    try:
        with transaction.atomic():
            deployment = Deployment.objects.create(
                pipeline=pipeline, version=chosen, placement=placement or {}, created_by=actor
            )
    except IntegrityError as error:
        raise Conflict(
            f'"{name}" is being deployed by somebody else.', safe="Nothing was changed."
        ) from error
    return _operate(actor, deployment, Operation.Kind.DEPLOY)


def what_would_change(
    actor: User, name: str, version: int | None = None, placement: dict[str, str] | None = None
) -> DeployPlan:
    """What `deploy` would do; nothing is done. {"changes": of each element {element, change, reason, path,
    loses}, or, of a pipeline that is not deployed, as `first_placement` says; "repeats": whether it tries an
    upgrade again that failed}"""
    require(actor, Role.EDITOR, "deploy pipelines")
    pipeline = pipeline_named(name)
    document = _valid_document(pipeline, version, placement or {})
    running = active_deployment(pipeline)
    if running is None:
        return {"changes": first_placement(document, placement or {}), "repeats": False}
    changes = [_change_json(change) for change in upgrade_changes(running, document)]
    return {"changes": changes, "repeats": _upgrade_failed(running)}


def _change_json(change: ElementChange) -> DeployChange:
    return {
        "element": change.element,
        "change": change.change,
        "reason": change.reason,
        "path": change.path,
        "loses": change.loses,
    }


def _upgrade(
    actor: User,
    deployment: Deployment,
    version: int | None,
    placement: dict[str, str],
    restart: Collection[str],
) -> Operation:
    pipeline = deployment.pipeline
    name, runs = pipeline.name, f"version {deployment.version.number}"
    document = _valid_document(pipeline, version, placement)
    same = is_what_runs(document, deployment)
    if same and _is_upgraded(deployment, document):
        raise Conflict(
            f'"{name}" is running already ({runs}), and that is what would be deployed.',
            safe="What runs goes on unchanged.",
            next="Change the draft, or undeploy it first.",
            deployment=deployment.pk,
        )
    begin_anew = refuse_upgrade(deployment, document, placement, restart)
    deployment.version = _chosen_version(actor, pipeline, version)
    deployment.save(update_fields=["version"])
    return _operate(actor, deployment, Operation.Kind.UPGRADE, restart=begin_anew)


def _is_upgraded(deployment: Deployment, document: dict[str, Any]) -> bool:
    """Whether all groups have what the document says; after an upgrade that failed, it is repeated."""
    if _upgrade_failed(deployment):
        return False  # the group at which it failed has its new definition, but may not run
    versions = {placement.group: placement.spec["version"] for placement in deployment.placements.all()}
    specs = planned(parse_document(document), deployment.pk)
    return all(versions.get(spec.group) == spec.version for spec in specs)


def _upgrade_failed(deployment: Deployment) -> bool:
    last = deployment.operations.filter(kind=Operation.Kind.UPGRADE).first()
    return last is not None and last.status == Operation.Status.FAILED


def _valid_document(pipeline: Pipeline, version: int | None, placement: dict[str, str]) -> dict[str, Any]:
    """The draft, or a version's; Invalid names all faults."""
    document: dict[str, Any] = pipeline.draft
    if version is not None:
        document = version_of(pipeline, version).document
    faults = [fault.model_dump(mode="json") for fault in check(document).faults]
    faults += _placement_faults(document, placement)
    if faults:
        raise Invalid(
            f"{pipeline.name} cannot be deployed: it has {_mistakes(faults)}.",
            safe="Nothing was deployed.",
            next="Correct the elements that are named, then deploy again.",
            faults=faults,
        )
    return document


def _mistakes(faults: list[dict[str, Any]]) -> str:
    return "1 mistake" if len(faults) == 1 else f"{len(faults)} mistakes"


def _chosen_version(actor: User, pipeline: Pipeline, version: int | None) -> PipelineVersion:
    return _snapshot(actor, pipeline, "") if version is None else version_of(pipeline, version)


@transaction.atomic
def undeploy(actor: User, name: str) -> Operation:
    """Retire every group. Asked for again meanwhile, it is the same operation."""
    require(actor, Role.EDITOR, "undeploy pipelines")
    pipeline = pipeline_named(name, for_update=True)
    deployment = active_deployment(pipeline)
    if deployment is None:
        raise Conflict(f'"{name}" is not deployed.', safe="Nothing was changed.")
    going = deployment.operations.filter(
        kind=Operation.Kind.UNDEPLOY, status__in=[Operation.Status.PENDING, Operation.Status.RUNNING]
    ).first()
    if going is not None:
        return going
    deployment.status = Deployment.Status.UNDEPLOYING
    deployment.save(update_fields=["status"])
    return _operate(actor, deployment, Operation.Kind.UNDEPLOY)


@transaction.atomic
def set_paused(actor: User, name: str, element: str, paused: bool) -> None:
    """Pause or resume the element's group. Done twice, it is done once."""
    doing = "pause" if paused else "resume"
    require(actor, Role.OPERATOR, f"{doing} elements")
    deployment, group = deployed_group(name, element, doing)
    refusal = (pause_refusal if paused else resume_refusal)(group)
    if refusal is not None and group.paused != paused:
        title = deployment.name_of(element)
        raise Conflict(f"{title} cannot {doing}: {refusal}.", safe="Nothing was changed.")
    if group.paused != paused:
        placement = GroupPlacement.objects.get(deployment=deployment, group=group.group)
        placement.paused_at = timezone.now() if paused else None
        if not paused:
            placement.vouch()
        placement.save(update_fields=["paused_at", *GroupPlacement.VOUCHED])
        audit(actor, f"element.{doing}", f"{name}/{element}", group=group.group)
        celery.command(tasks.DESIRED_CHANGED, [group.node])
        announce("elements", name)


@transaction.atomic
def take_checkpoint(actor: User, name: str, element: str) -> None:
    require(actor, Role.OPERATOR, "take checkpoints")
    deployment, group = deployed_group(name, element, "take a checkpoint")
    refusal = checkpoint_refusal(group)
    if refusal is not None:
        title = deployment.name_of(element)
        raise Conflict(f"{title} cannot take a checkpoint: {refusal}.", safe="Nothing was changed.")
    audit(actor, "element.checkpoint", f"{name}/{element}", group=group.group)
    celery.command(tasks.CHECKPOINT, deployment.pk, group.group, has_row=False)


def deployed_group(name: str, element: str, doing: str) -> tuple[Deployment, GroupFacts]:
    """The group behind an element of a deployed pipeline, or the refusal. Part of transactions, so it asks
    nobody but the database."""
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    document = deployment.version.document if deployment else pipeline.draft
    found = element_of(document, element)
    if found is None:
        raise Missing(f'There is no element "{element}" in the pipeline "{name}".')
    title = names_of(document)[element]
    if deployment is None:
        raise Conflict(f"{title} cannot {doing}: {name} is not deployed.", safe="Nothing was changed.")
    if is_view(found.get("type")):
        raise Conflict(
            f"{title} cannot {doing}: the dashboard itself shows it, no node runs it.",
            safe="Nothing was changed.",
        )
    group = group_of(deployment.version.document, element)
    facts = group_facts([deployment])[deployment.pk].get(group)
    return deployment, facts or GroupFacts(group=group, deployment_status=deployment.status)


def _operate(
    actor: User, deployment: Deployment, kind: Operation.Kind, *, restart: Sequence[str] = ()
) -> Operation:
    operation = Operation.objects.create(
        kind=kind, deployment=deployment, created_by=actor, restart=list(restart)
    )
    name = deployment.pipeline.name
    audit(
        actor,
        f"pipeline.{kind.value}",
        name,
        deployment=deployment.pk,
        version=deployment.version.number,
        operation=str(operation.pk),
        **({"restart": list(restart)} if restart else {}),
    )
    # An upgrade is a deployment to the control side: it looks at the operation.
    command = tasks.UNDEPLOY if kind == Operation.Kind.UNDEPLOY else tasks.DEPLOY
    celery.command(command, str(operation.pk))
    announce("operations", str(operation.pk))
    announce("pipelines", name)
    announce("elements", name)
    return operation


def _snapshot(actor: User, pipeline: Pipeline, note: str) -> PipelineVersion:
    newest = pipeline.versions.first()
    if newest is not None and newest.document == pipeline.draft:
        return newest
    version = PipelineVersion.objects.create(
        pipeline=pipeline,
        number=newest.number + 1 if newest else 1,
        document=pipeline.draft,
        note=note,
        created_by=actor,
    )
    audit(actor, "pipeline.version", pipeline.name, version=version.number, note=note)
    return version


def _check_name(name: str) -> None:
    try:
        Metadata(name=name)
    except ValueError:
        message = "up to 40 lower-case letters, digits and hyphens; it starts and ends with a letter or digit"
        fault: Fault = {"element": None, "path": "name", "message": message, "code": "invalid"}
        raise Invalid(f'"{name[:60]}" is no name for a pipeline.', faults=[fault]) from None


def _check_draft(name: str, document: dict[str, Any]) -> None:
    """A draft may be broken in places, but it has to be this pipeline's, and readable for the editor."""
    metadata = document.get("metadata")
    called = metadata.get("name") if isinstance(metadata, dict) else None
    faults = []
    if called != name:
        message = f'the document is called "{called}", the pipeline "{name}"'
        faults.append({"element": None, "path": "metadata.name", "message": message, "code": "name"})
    spec = document.get("spec", {})
    for key in ("elements", "groups"):
        items = spec.get(key, []) if isinstance(spec, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            message = "must be a list of objects"
            faults.append({"element": None, "path": f"spec.{key}", "message": message, "code": "invalid"})
    if faults:
        raise Invalid("This is not a draft of this pipeline.", safe="Nothing was saved.", faults=faults)


def _placement_faults(document: dict[str, Any], placement: dict[str, str]) -> list[dict[str, Any]]:
    nodes = set(Node.objects.values_list("name", flat=True))
    known = {element["id"] for element in elements_of(document)}
    known |= {group_of(document, element) for element in set(known)}
    faults = []
    for key, node in placement.items():
        path = f"placement.{key}"
        if key not in known:
            message = f'there is no element or group "{key}"'
            faults.append({"element": None, "path": path, "message": message, "code": "unknown_element"})
        if node not in nodes:
            message = f'there is no node "{node}"'
            faults.append({"element": key, "path": path, "message": message, "code": "unknown_node"})
    return faults
