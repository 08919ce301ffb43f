"""Deploys, upgrades and undeploys. An action writes the order, and control carries it out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from django.db import IntegrityError, transaction

from pipeline_runtime.kafka.delivered import undelivered
from pipeline_runtime.model.faults import listed
from pipeline_runtime.planning.upgrade import ElementChange
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.backends.kafka import asked_of_kafka
from webapp.handovers.facts import group_facts
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.operations.schemas import Undelivered, UndeployPlan
from webapp.operations.selectors import operation_with
from webapp.operations.state_import import take_along
from webapp.operations.upgrades import refuse_upgrade, upgrade_changes
from webapp.pipelines.actions import overtaken, snapshot
from webapp.pipelines.checking import check
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.pipelines.selectors import pipeline_named, version_of
from webapp.pipelines.shape import elements_of, group_of, names_of
from webapp.placements.delivered import delivered_streams, failing_connectors
from webapp.placements.group_state import does, status_of
from webapp.placements.models import Deployment
from webapp.placements.placing import first_placement, places_of_regrouped
from webapp.placements.schemas import DeployChange, DeployPlan
from webapp.placements.selectors import active_deployment, is_what_runs, planned_for
from webapp.problems import BackendAway, Conflict, Invalid


@dataclass(frozen=True)
class Because:
    """Why copies at a site are changed, if no person ordered it by hand."""

    reason: str = ""  # "policy NAME"; empty if a person has ordered it
    site: str = ""
    note: str = ""  # of the version that is created


NO_REASON = Because()
NO_PLACEMENT: Mapping[str, str] = MappingProxyType({})


@transaction.atomic
def deploy(
    actor: User,
    name: str,
    version: int | None = None,
    placement: dict[str, str] | None = None,
    revision: int | None = None,
    restart: Collection[str] = (),
) -> Operation:
    """Deploys a version, or the draft as a new version. A pipeline has at most one deployment at a time.

    A pipeline that runs is upgraded in place, if its groups and their state allow that. `revision` is the
    revision of the draft that the user has seen; raises Conflict if the draft has changed since. `restart`
    lists elements that may lose their state, if the new version cannot use it.
    """
    require(actor, Role.EDITOR, "deploy pipelines")
    pipeline = pipeline_named(name, for_update=True)
    if revision is not None and pipeline.draft_revision != revision:
        raise Conflict(
            overtaken(pipeline, revision),
            safe="Nothing was deployed.",
            next="Look at the present draft, then deploy again.",
            code="draft-overtaken",
        )
    running = active_deployment(pipeline)
    if running is not None and running.status == Deployment.Status.RUNNING:
        return upgrade(actor, running, version, placement or {}, restart)
    if running is not None:
        raise Conflict(
            f'"{pipeline.title}" is {running.status} already (version {running.version.number}).',
            safe="The running pipeline is unchanged.",
            next="Wait until that has ended, or choose Undeploy now."
            if running.status == Deployment.Status.UNDEPLOYING
            else "Undeploy it before you deploy another version.",
            deployment=running.pk,
        )
    valid_document(pipeline, version, placement or {})
    chosen = _chosen_version(actor, pipeline, version)
    try:
        with transaction.atomic():
            deployment = Deployment.objects.create(
                pipeline=pipeline, version=chosen, placement=placement or {}, created_by=actor
            )
    except IntegrityError as error:
        raise Conflict(
            f'"{pipeline.title}" is being deployed by somebody else.',
            safe="Nothing was changed.",
            next="Wait until that deployment has ended, then look at what runs.",
        ) from error
    take_along(pipeline, chosen, deployment)
    return _operate(actor, deployment, Operation.Kind.DEPLOY)


def what_would_change(
    actor: User, name: str, version: int | None = None, placement: dict[str, str] | None = None
) -> DeployPlan:
    """Returns what `deploy` would do, and does nothing.

    "changes" has {element, change, reason, path, loses} of each element, and what `first_placement` says
    about those that are added. "repeats" says whether it would try an upgrade again that failed.
    """
    require(actor, Role.EDITOR, "deploy pipelines")
    pipeline = pipeline_named(name)
    document = valid_document(pipeline, version, placement or {})
    running = active_deployment(pipeline)
    if running is None:
        return {"changes": first_placement(document, placement or {}), "repeats": False}
    changes = {change.element: change for change in upgrade_changes(running, document)}
    coming = [id for id, change in changes.items() if change.change == "added"]
    places = {place["element"]: place for place in first_placement(document, {}, coming, running)}
    places |= places_of_regrouped(running, document)
    names = {**names_of(running.version.document), **names_of(document)}
    told = [_change_json(change, names, places.get(id)) for id, change in changes.items()]
    return {"changes": told, "repeats": upgrade_failed(running)}


def _change_json(change: ElementChange, names: Mapping[str, str], place: DeployChange | None) -> DeployChange:
    """Returns a change as JSON. `place` is where an element that is added goes."""
    told: DeployChange = {
        "element": change.element,
        "title": names.get(change.element, change.element),
        "change": change.change,
        "reason": change.reason,
        "path": change.path,
        "loses": change.loses,
        "instead": change.instead,
        "view": change.view,
    }
    return told if place is None else {**place, **told}


def upgrade(
    actor: User | None,
    deployment: Deployment,
    version: int | None = None,
    placement: Mapping[str, str] = NO_PLACEMENT,
    restart: Collection[str] = (),
    because: Because = NO_REASON,
) -> Operation:
    """Orders an upgrade. Call it in a transaction that has locked the pipeline. `actor` is None for control
    itself."""
    pipeline = deployment.pipeline
    runs = f"version {deployment.version.number}"
    document = valid_document(pipeline, version, placement)
    same = is_what_runs(document, deployment)
    if same and _is_upgraded(deployment, document):
        raise Conflict(
            f'"{pipeline.title}" already runs the version that would be deployed ({runs}).',
            safe="The running pipeline is unchanged.",
            next="Change the draft, or undeploy it first.",
            deployment=deployment.pk,
        )
    begin_fresh = refuse_upgrade(deployment, document, placement, restart)
    replaces = deployment.version
    deployment.version = _chosen_version(actor, pipeline, version, because.note)
    deployment.save(update_fields=["version"])
    return _operate(
        actor, deployment, Operation.Kind.UPGRADE, restart=begin_fresh, replaces=replaces, because=because
    )


def _is_upgraded(deployment: Deployment, document: dict[str, Any]) -> bool:
    """Returns whether all groups already run what the document says. If they do not, an upgrade that failed
    is repeated."""
    if upgrade_failed(deployment):
        return False  # the group at which it failed has its new definition, but may not run
    versions = {placement.group: placement.spec["version"] for placement in deployment.placements.all()}
    specs = planned_for(deployment, document)
    return versions == {spec.group: spec.version for spec in specs}


def upgrade_failed(deployment: Deployment) -> bool:
    last = deployment.operations.filter(kind=Operation.Kind.UPGRADE).first()
    return last is not None and last.status == Operation.Status.FAILED


def valid_document(pipeline: Pipeline, version: int | None, placement: Mapping[str, str]) -> dict[str, Any]:
    """Returns the draft, or a version's document. Raises Invalid, which names all faults."""
    document: dict[str, Any] = pipeline.draft
    if version is not None:
        document = version_of(pipeline, version).document
    refuse_invalid(pipeline.title, document, placement)
    return document


def refuse_invalid(title: str, document: dict[str, Any], placement: Mapping[str, str] = NO_PLACEMENT) -> None:
    """Raises Invalid with all faults. `title` is what people call the pipeline."""
    faults = [fault.model_dump(mode="json") for fault in check(document).faults]
    faults += _placement_faults(document, placement)
    if faults:
        raise Invalid(
            f"{title} cannot be deployed: it has {_mistakes(faults)}.",
            safe="Nothing was deployed.",
            next="Correct the elements that are named, then deploy again.",
            faults=faults,
        )


def _mistakes(faults: list[dict[str, Any]]) -> str:
    return "1 mistake" if len(faults) == 1 else f"{len(faults)} mistakes"


def _chosen_version(
    actor: User | None, pipeline: Pipeline, version: int | None, note: str = ""
) -> PipelineVersion:
    return snapshot(actor, pipeline, note) if version is None else version_of(pipeline, version)


def what_would_be_lost(actor: User, name: str) -> UndeployPlan:
    """Returns the rows that wait at elements which deliver to systems outside."""
    require(actor, Role.EDITOR, "undeploy pipelines")
    deployment = active_deployment(pipeline_named(name))
    if deployment is None:
        return {"undelivered": []}
    found: list[Undelivered] = []
    whys = failing_connectors(deployment)
    for stream in delivered_streams(deployment):
        try:
            rows = asked_of_kafka(partial(undelivered, topic=stream.topic))
        except BackendAway:
            return {"undelivered": None}
        if rows.rows:
            found.append(
                {
                    "element": stream.element,
                    "title": stream.title,
                    "rows": rows.rows,
                    "estimated": rows.estimated,
                    "why": whys.get(stream.element, ""),
                    "unread": False,
                }
            )
    return {"undelivered": found}


@transaction.atomic
def undeploy(actor: User, name: str) -> Operation:
    """Orders an undeployment, which retires every group and waits until what they have put out is delivered.

    A second call meanwhile returns the same operation. If the pipeline was to run again, it stays
    undeployed."""
    require(actor, Role.EDITOR, "undeploy pipelines")
    pipeline = pipeline_named(name, for_update=True)
    deployment = active_deployment(pipeline)
    if deployment is None:
        raise Conflict(
            f'"{pipeline.title}" is not deployed.', safe="Nothing was changed.", next="Nothing is to be done."
        )
    going = _undeployment(deployment)
    if going is None:
        return _undeploy(actor, deployment)
    if going.again:
        going.again = False
        going.save(update_fields=["again"])
        audit(actor, "pipeline.undeploy", name, deployment=deployment.pk, operation=str(going.pk))
        announce()
    return going


@transaction.atomic
def hurry(actor: User, id: str) -> Operation:
    """Lets an undeployment or an upgrade go on without waiting for deliveries. A deployment that is to follow
    it follows. Raises Missing, and Conflict if the operation has ended or waits for no deliveries."""
    require(actor, Role.EDITOR, "undeploy pipelines")
    operation_with(id)
    operation = Operation.objects.select_for_update(no_key=True, of=("self",)).get(pk=id)
    pipeline = operation.deployment.pipeline
    if operation.kind == Operation.Kind.DEPLOY or operation.status not in Operation.UNFINISHED:
        has = "waits for no deliveries" if operation.kind == Operation.Kind.DEPLOY else "has ended"
        raise Conflict(
            f'This {operation.get_kind_display().lower()} of "{pipeline.title}" {has}.',
            safe="Nothing was changed.",
            next="Look at what runs now.",
        )
    if not operation.hurry:
        operation.hurry = True
        operation.save(update_fields=["hurry"])
        audit(actor, "pipeline.hurry", pipeline.name, operation=str(operation.pk), kind=operation.kind)
        announce()
    return operation


@transaction.atomic
def run_again(actor: User, name: str) -> Operation:
    """Lets a pipeline that has ended run once more from the beginning: control undeploys it, and then deploys
    the same version. Returns the undeployment. A second call meanwhile returns the same one.

    Raises Conflict if the pipeline has not ended, and Invalid if its version cannot be deployed any more.
    """
    require(actor, Role.EDITOR, "deploy pipelines")
    pipeline = pipeline_named(name, for_update=True)
    deployment = active_deployment(pipeline)
    if deployment is None:
        raise Conflict(f'"{pipeline.title}" is not deployed.', safe="Nothing was changed.", next="Deploy it.")
    going = _undeployment(deployment)
    if going is not None and going.again:
        return going
    facts = group_facts([deployment])[deployment.pk]
    late = {name: status for name, group in facts.items() if (status := status_of(group)) != "ended"}
    if deployment.status != Deployment.Status.RUNNING or late:
        said = listed(f'"{deployment.name_of(name)}" {does(status)}' for name, status in late.items())
        now = f"Now {said}. " if late else ""
        raise Conflict(
            f'"{pipeline.title}" has not ended, so it cannot run again.',
            safe="Nothing was changed.",
            next=f"{now}Wait until its sources have read everything, or undeploy it and deploy it again.",
        )
    valid_document(pipeline, deployment.version.number, deployment.placement)
    return _undeploy(actor, deployment, again=True)


def deploy_again(undeployment: Operation) -> None:
    """Orders the deployment that follows an undeployment of `run_again`, in the transaction that ends it."""
    ended = undeployment.deployment
    deployment = Deployment.objects.create(
        pipeline=ended.pipeline,
        version=ended.version,
        placement=ended.placement,
        created_by=undeployment.created_by,
    )
    undeployment.next = _operate(undeployment.created_by, deployment, Operation.Kind.DEPLOY)


def _undeployment(deployment: Deployment) -> Operation | None:
    """Returns the undeployment that is under way, if any, and locks it."""
    rows = deployment.operations.filter(kind=Operation.Kind.UNDEPLOY, status__in=Operation.UNFINISHED)
    return rows.select_for_update(of=("self",)).first()


def _undeploy(actor: User, deployment: Deployment, *, again: bool = False) -> Operation:
    deployment.status = Deployment.Status.UNDEPLOYING
    deployment.save(update_fields=["status"])
    return _operate(actor, deployment, Operation.Kind.UNDEPLOY, again=again)


def _operate(
    actor: User | None,
    deployment: Deployment,
    kind: Operation.Kind,
    *,
    restart: Sequence[str] = (),
    replaces: PipelineVersion | None = None,
    because: Because = NO_REASON,
    again: bool = False,
) -> Operation:
    operation = Operation.objects.create(
        kind=kind,
        deployment=deployment,
        created_by=actor,
        restart=list(restart),
        replaces=replaces,
        reason=because.reason,
        site=because.site,
        again=again,
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
        **({"reason": because.reason} if because.reason else {}),
        **({"again": True} if again else {}),
    )
    commands.send(tasks.OPERATION, str(operation.pk))
    announce()
    return operation


def _placement_faults(document: dict[str, Any], placement: Mapping[str, str]) -> list[dict[str, Any]]:
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
