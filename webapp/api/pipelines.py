from __future__ import annotations

import re
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from pipeline_runtime.model.document import TITLE_MAX
from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.handovers import way_home
from webapp.handovers.schemas import BroughtBack
from webapp.monitoring.board import all_pipelines, pipeline_json
from webapp.monitoring.samples import expects_rows, refuse_unexpected
from webapp.monitoring.schemas import Pipeline, PipelineItem
from webapp.operations import actions as operation_actions, copies as operation_copies
from webapp.operations.schemas import Operation, UndeployPlan
from webapp.operations.selectors import operation_json, operation_with, recent_operations
from webapp.pipelines import actions
from webapp.pipelines.checking import check, fault_json
from webapp.pipelines.difference import difference
from webapp.pipelines.schemas import (
    Copies,
    NamedDifference,
    PipelineVersion,
    Validation,
    VersionItem,
)
from webapp.pipelines.selectors import pipeline_named, version_item, version_json, version_of
from webapp.placements import undeployed
from webapp.placements.schemas import DeployPlan
from webapp.placements.selectors import active_deployment
from webapp.problems import Fault, Invalid, PreconditionRequired
from webapp.walls.actions import follow_rename, follow_title

router = Router(tags=["pipelines"])


class NewPipeline(Body):
    name: str | None = None
    title: str = Field(default="", max_length=TITLE_MAX)
    document: dict[str, Any] | None = None


class Draft(Body):
    document: dict[str, Any]


class CopiesIn(Draft):
    elements: list[str] = Field(min_length=1)
    sites: list[str] = Field(min_length=1)


class CopiesChange(Body):
    site: str = Field(min_length=1, max_length=60)
    change: operation_copies.Change


class OptionalDraft(Body):
    document: dict[str, Any] | None = None


class Note(Body):
    note: str = Field("", max_length=200)


class Deploy(Body):
    version: int | None = None
    placement: dict[str, str] = {}
    revision: int | None = None  # of the draft that the caller saw; 409 when it has changed since
    dry_run: bool = False
    restart: list[str] = []  # elements that may begin without their state, when a change cannot keep it
    check_expected: bool = True  # 409 unless elements still make of their pinned rows what is expected


class Undeploy(Body):
    dry_run: bool = False


class NewName(Body):
    name: str = Field(max_length=200)


@router.get("/pipelines", response=list[PipelineItem])
def list_pipelines(request: HttpRequest) -> list[PipelineItem]:
    """Lists the pipelines, without their documents."""
    return all_pipelines()


@router.post("/pipelines", response={201: Pipeline})
def create_pipeline(request: HttpRequest, response: HttpResponse, body: NewPipeline) -> Status[Pipeline]:
    """Creates a pipeline. `title` is what people call it, in any letters; without `name`, its name is made of
    the title. Without both, it has the name in the document."""
    title = " ".join(body.title.split())
    metadata = (body.document or {}).get("metadata")
    name = body.name or (metadata.get("name") if isinstance(metadata, dict) and not title else None)
    if not title and (not isinstance(name, str) or not name):
        fault: Fault = {"element": None, "path": "name", "message": "a name is required", "code": "missing"}
        raise Invalid(
            "The pipeline has no name.",
            safe="Nothing was created.",
            next="Send a title, a name, or a document that has a name.",
            faults=[fault],
        )
    document = body.document
    if document is not None and body.name:
        document = actions.named(document, name)
    pipeline = actions.create_pipeline(actor(request), name, document, title=title)
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return Status(201, pipeline_json(pipeline))


@router.get("/pipelines/{name}", response=Pipeline)
def get_pipeline(request: HttpRequest, response: HttpResponse, name: str) -> Pipeline:
    """Returns a pipeline with its draft. `ETag` is the revision that a save has to name."""
    pipeline = pipeline_named(name)
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return pipeline_json(pipeline)


@router.put("/pipelines/{name}", response=Pipeline)
def save_draft(request: HttpRequest, response: HttpResponse, name: str, body: Draft) -> Pipeline:
    """Saves the draft. Needs `If-Match: "<revision>"` (else 428). Answers 409 with both versions when another
    save came first."""
    require(actor(request), Role.EDITOR, "edit pipelines")
    with transaction.atomic():
        before = pipeline_named(name).title
        pipeline = actions.save_draft(actor(request), name, body.document, wanted_revision(request))
        follow_title(name, before, pipeline.title)
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return pipeline_json(pipeline)


@router.post("/pipelines/{name}/rename", response=Pipeline)
def rename_pipeline(request: HttpRequest, response: HttpResponse, name: str, body: NewName) -> Pipeline:
    """Renames the pipeline with its draft and its versions, also where walls show it. Answers 409 while it is
    deployed."""
    with transaction.atomic():
        pipeline = undeployed.rename_pipeline(actor(request), name, body.name)
        follow_rename(name, body.name)
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return pipeline_json(pipeline)


@router.delete("/pipelines/{name}", response={204: None})
def delete_pipeline(request: HttpRequest, name: str) -> Status[None]:
    """Deletes a pipeline with its draft and its versions. Answers 409 while it is deployed."""
    undeployed.delete_pipeline(actor(request), name)
    return Status(204, None)


@router.get("/pipelines/{name}/versions", response=list[VersionItem])
def versions(request: HttpRequest, name: str) -> list[VersionItem]:
    """Lists the versions, without their documents."""
    rows = pipeline_named(name).versions.select_related("created_by")
    return [version_item(row) for row in rows]


@router.post("/pipelines/{name}/versions", response={201: PipelineVersion})
def save_version(request: HttpRequest, name: str, body: Note) -> Status[PipelineVersion]:
    """Saves the draft as a version. Returns the newest version if that has the same document."""
    return Status(201, version_json(actions.save_version(actor(request), name, body.note)))


@router.get("/pipelines/{name}/versions/{int:number}", response=PipelineVersion)
def version(request: HttpRequest, name: str, number: int) -> PipelineVersion:
    """Returns one version with its document."""
    return version_json(version_of(pipeline_named(name), number))


@router.post("/pipelines/{name}/versions/{int:number}/restore", response=Pipeline)
def restore_version(request: HttpRequest, response: HttpResponse, name: str, number: int) -> Pipeline:
    """Makes a version's document the draft. The draft that it replaces becomes a version."""
    pipeline = actions.restore_version(actor(request), name, number)
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return pipeline_json(pipeline)


@router.get("/pipelines/{name}/diff", response=NamedDifference)
def diff(
    request: HttpRequest,
    name: str,
    from_: str = Query(..., alias="from"),
    to: str = Query("draft"),
) -> NamedDifference:
    """`from` and `to` are version numbers, `draft` or `deployed`."""
    pipeline = pipeline_named(name)

    def document(which: str) -> dict[str, Any]:
        if which == "draft":
            found: dict[str, Any] = pipeline.draft
            return found
        if which == "deployed":
            deployment = active_deployment(pipeline)
            return deployment.version.document if deployment else {}
        if not re.fullmatch(r"\d{1,9}", which):
            message = "a version's number, draft or deployed"
            fault: Fault = {"element": None, "path": "from, to", "message": message, "code": "invalid"}
            raise Invalid(
                f'There is no version "{which[:40]}".', next="See the list of its versions.", faults=[fault]
            )
        return version_of(pipeline, int(which)).document

    return {"from": from_, "to": to, **difference(document(from_), document(to))}


@router.post("/pipelines/{name}/validate", response=Validation)
def validate(request: HttpRequest, name: str, body: OptionalDraft | None = None) -> Validation:
    """Returns all faults of the draft, or of the document in the body, and the schemas of the streams."""
    pipeline = pipeline_named(name)
    document = body.document if body is not None and body.document is not None else pipeline.draft
    found = check(document)
    return {"faults": [fault_json(fault) for fault in found.faults], "schemas": found.schemas}


@router.post("/pipelines/{name}/copies", response=Copies)
def copies(request: HttpRequest, name: str, body: CopiesIn) -> Copies:
    """Returns the document in the body with a copy of its elements at each of these sites. Their readers read
    all copies. Nothing is saved."""
    return operation_copies.drawn(name, body.document, body.elements, body.sites)


@router.post("/pipelines/{name}/sites", response={202: Operation})
def sites(request: HttpRequest, response: HttpResponse, name: str, body: CopiesChange) -> Status[Operation]:
    """Carries out the advice of a policy of sites. With `copy`, the parts that are copied to sites get a copy
    at this site; with `take-out`, they have none there any more. It changes the draft and, at once, what
    runs. Only allowed while the draft is what runs."""
    operation = operation_copies.change_copies(actor(request), name, body.site, body.change)
    response.headers["Location"] = f"/api/v1/operations/{operation.pk}"
    return Status(202, operation_json(operation))


@router.post("/pipelines/{name}/deploy", response={200: DeployPlan, 202: Operation})
def deploy(
    request: HttpRequest, response: HttpResponse, name: str, body: Deploy | None = None
) -> Status[DeployPlan] | Status[Operation]:
    """Deploys a version (by default the draft, as a new one) and returns the operation to follow. A pipeline
    that runs already is upgraded in place.

    `dry_run` only says what would happen to each element: `change: "restart"` means that it cannot keep its
    state, and `loses` says what is lost. It also says whether the deployment `repeats` an upgrade that
    failed. For a pipeline that is not deployed, it says which node each element gets and why. `restart` lists
    the elements that may lose their state; without it a change that cannot keep a state is refused. If rows
    are expected of elements of the draft, a node checks them first. If they differ or could not be checked,
    nothing is deployed; `check_expected: false` deploys without that check. An earlier version is deployed
    without it, because what is expected belongs to the draft.
    """
    wanted = body or Deploy()
    if wanted.dry_run:
        return Status(
            200, operation_actions.what_would_change(actor(request), name, wanted.version, wanted.placement)
        )
    revision = wanted.revision
    if wanted.check_expected and wanted.version is None:
        require(actor(request), Role.EDITOR, "deploy pipelines")
        pipeline = pipeline_named(name)
        if expects_rows(pipeline):
            operation_actions.valid_document(pipeline, None, wanted.placement)
            checked = refuse_unexpected(actor(request), pipeline)
            revision = checked if revision is None else revision
    operation = operation_actions.deploy(
        actor(request), name, wanted.version, wanted.placement, revision, wanted.restart
    )
    response.headers["Location"] = f"/api/v1/operations/{operation.pk}"
    return Status(202, operation_json(operation))


@router.post("/pipelines/{name}/undeploy", response={200: UndeployPlan, 202: Operation})
def undeploy(
    request: HttpRequest, response: HttpResponse, name: str, body: Undeploy | None = None
) -> Status[UndeployPlan] | Status[Operation]:
    """Ends a deployment for good, and returns the operation to follow. All elements stop. Then it waits until
    the elements that deliver to systems outside have delivered what they have put out, at most 90 s for the
    next row. What was not delivered is in `undelivered` and in the message of the operation.

    `POST /operations/{id}/hurry` ends that wait. A second call meanwhile returns the same operation.
    `dry_run` only says how many rows wait for their delivery now.
    """
    wanted = body or Undeploy()
    if wanted.dry_run:
        return Status(200, operation_actions.what_would_be_lost(actor(request), name))
    operation = operation_actions.undeploy(actor(request), name)
    response.headers["Location"] = f"/api/v1/operations/{operation.pk}"
    return Status(202, operation_json(operation))


@router.post("/pipelines/{name}/run-again", response={202: Operation})
def run_again(request: HttpRequest, response: HttpResponse, name: str) -> Status[Operation]:
    """Runs a pipeline that has ended once more from the beginning. Returns the undeployment; when that has
    ended, its `next` is the deployment of the same version. Answers 409 unless all elements have ended. An
    undeployment that is ordered meanwhile takes the rest back."""
    operation = operation_actions.run_again(actor(request), name)
    response.headers["Location"] = f"/api/v1/operations/{operation.pk}"
    return Status(202, operation_json(operation))


@router.post("/pipelines/{name}/bring-back", response={202: BroughtBack})
def bring_back(request: HttpRequest, name: str) -> Status[BroughtBack]:
    """Orders a live migration home for each element that runs elsewhere than where it belongs. That is where
    the draft pins it, or where it was before a drain or a failure. Says of each that cannot move now why."""
    return Status(202, way_home.bring_back(actor(request), name))


@router.get("/operations", response=list[Operation])
def operations(request: HttpRequest) -> list[Operation]:
    """Lists the newest deployments, upgrades and undeployments."""
    return recent_operations()


@router.get("/operations/{uuid:id}", response=Operation)
def operation(request: HttpRequest, id: str) -> Operation:
    """Returns one deployment, upgrade or undeployment."""
    return operation_json(operation_with(str(id)))


@router.post("/operations/{uuid:id}/hurry", response={202: Operation})
def hurry(request: HttpRequest, id: str) -> Status[Operation]:
    """Lets this undeployment, or this upgrade, go on without waiting for deliveries. Rows that are not
    delivered then are lost, and its message names them. A deployment that is to follow it follows. Answers
    409 if the operation has ended."""
    return Status(202, operation_json(operation_actions.hurry(actor(request), str(id))))


def etag(revision: int) -> str:
    return f'"{revision}"'


def wanted_revision(request: HttpRequest) -> int:
    header = request.headers.get("If-Match", "")
    match = re.fullmatch(r'(?:W/)?"?(\d{1,9})"?', header.strip())
    if match is None:
        raise PreconditionRequired(
            "The request does not say which revision it changes.",
            safe="Nothing was saved.",
            next='Send If-Match: "<revision>", as you got it in the ETag.',
        )
    return int(match.group(1))
