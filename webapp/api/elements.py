from __future__ import annotations

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from pipeline_runtime.model.kept import LIMIT_MAX
from pipeline_runtime.model.node_log import LINES_MAX, SEARCH_MAX, Level
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.api.streaming import in_thread
from webapp.backends.chunk_store import open_output
from webapp.handovers import actions, elements as element_actions, standbys
from webapp.handovers.facts import group_id
from webapp.handovers.schemas import Forecast, Ordered
from webapp.handovers.selectors import forecast as handover_forecast, handover_json
from webapp.monitoring.board import element_list, element_named
from webapp.monitoring.kept import kept_page
from webapp.monitoring.node_log import element_log
from webapp.monitoring.schemas import (
    ElementHistory,
    KeptPage,
    LiveElement,
    NodeLog,
    Requested,
    WhyHere,
)
from webapp.monitoring.selectors import element_history
from webapp.monitoring.why_here import why_here
from webapp.nodes.models import Node
from webapp.pipelines.selectors import no_element, pipeline_named
from webapp.pipelines.shape import element_of
from webapp.placements.checkpoints import checkpoints_of
from webapp.placements.schemas import Checkpoints
from webapp.placements.selectors import active_deployment
from webapp.policies import places
from webapp.policies.schemas import UserPlace
from webapp.problems import BackendAway, Conflict

router = Router(tags=["elements"])
PATH = "/pipelines/{name}/elements/{id}"


class Migrate(Body):
    target: str
    strategy: str | None = None


class GoOn(Body):
    way: str = Field(min_length=1, max_length=400)


class Restore(Body):
    target: str | None = None
    checkpoint: int | None = Field(default=None, ge=0)
    rewind: bool = False


class Place(Body):
    site: str = Field(min_length=1, max_length=40)


class Standby(Body):
    node: str


@router.get("/pipelines/{name}/elements", response=list[LiveElement])
def elements(request: HttpRequest, name: str) -> list[LiveElement]:
    """Lists the pipeline's elements as they run now; if it is not deployed, those of its draft."""
    return element_list(pipeline_named(name))


@router.get(PATH, response=LiveElement)
def element(request: HttpRequest, name: str, id: str) -> LiveElement:
    """Returns one element as it runs now."""
    return element_named(pipeline_named(name), id)


@router.get(PATH + "/why", response=WhyHere)
def why(request: HttpRequest, name: str, id: str) -> WhyHere:
    """Says why the element is on its node, as it was recorded when it came there."""
    return why_here(pipeline_named(name), id)


@router.get(PATH + "/history", response=ElementHistory)
def history(request: HttpRequest, name: str, id: str) -> ElementHistory:
    """Returns the points of the element's curves, oldest first."""
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    # Not through `element_named`, which reads all of its state: each open chart asks for this again and
    # again.
    if element_of(deployment.version.document if deployment else pipeline.draft, id) is None:
        raise no_element(name, id)
    return {"points": element_history(deployment.pk, id) if deployment else []}


@router.post(PATH + "/pause", response=LiveElement)
def pause(request: HttpRequest, name: str, id: str) -> LiveElement:
    """Pauses the element's group after its running batch. Rows wait until it is resumed."""
    element_actions.set_paused(actor(request), name, id, True)
    return element_named(pipeline_named(name), id)


@router.post(PATH + "/resume", response=LiveElement)
def resume(request: HttpRequest, name: str, id: str) -> LiveElement:
    """Lets the element's group go on after a pause."""
    element_actions.set_paused(actor(request), name, id, False)
    return element_named(pipeline_named(name), id)


@router.post(PATH + "/go-on", response=LiveElement)
def go_on(request: HttpRequest, name: str, id: str, body: GoOn) -> LiveElement:
    """Lets an element that waits for a person go on, in one of the ways that its `error.ways` offers."""
    element_actions.go_on(actor(request), name, id, body.way)
    return element_named(pipeline_named(name), id)


@router.post(PATH + "/migrate", response={202: Ordered})
def migrate(
    request: HttpRequest, response: HttpResponse, name: str, id: str, body: Migrate
) -> Status[Ordered]:
    """Orders a live migration of the element's group to the node `target`, and returns the handover to
    follow. `strategy` is `standby` or `stop-and-copy`; without it, `standby` where the group can be
    followed."""
    handover = actions.migrate(actor(request), name, id, body.target, body.strategy)
    response.headers["Location"] = f"/api/v1/handovers/{handover.pk}"
    return Status(202, {"handover": handover_json(handover)})


@router.get(PATH + "/forecast", response=Forecast)
def forecast(request: HttpRequest, name: str, id: str) -> Forecast:
    """Says how long a move to each other node will take, by how long earlier moves took."""
    pipeline = pipeline_named(name)
    element_named(pipeline, id)
    return {"nodes": handover_forecast(pipeline, id)}


@router.post(PATH + "/restore", response={202: Ordered})
def restore(
    request: HttpRequest, response: HttpResponse, name: str, id: str, body: Restore | None = None
) -> Status[Ordered]:
    """Restores the element, even while its node is down or silent. By default its hot standby takes over,
    else the newest checkpoint is restored on the least busy node. `rewind` emits again what was committed
    after `checkpoint`."""
    wanted = body or Restore()
    handover = actions.restore(actor(request), name, id, wanted.target, wanted.checkpoint, wanted.rewind)
    response.headers["Location"] = f"/api/v1/handovers/{handover.pk}"
    return Status(202, {"handover": handover_json(handover)})


@router.post(PATH + "/standby", response={202: LiveElement})
def keep_standby(request: HttpRequest, name: str, id: str, body: Standby) -> Status[LiveElement]:
    """Keeps a hot standby of the element's group on a node. Returns the element."""
    standbys.keep_standby(actor(request), name, id, body.node)
    return Status(202, element_named(pipeline_named(name), id))


@router.delete(PATH + "/standby", response={202: LiveElement})
def drop_standby(request: HttpRequest, name: str, id: str) -> Status[LiveElement]:
    """Drops all standbys of the element's group. Returns the element."""
    standbys.drop_standby(actor(request), name, id)
    return Status(202, element_named(pipeline_named(name), id))


@router.put(PATH + "/place", response=UserPlace)
def tell_place(request: HttpRequest, name: str, id: str, body: Place) -> UserPlace:
    """Tells where the element's user is now, as a site of the map. Policies of the kind follow use it.
    Another site is accepted every 2 s; sooner it is answered by 429."""
    return places.place_json(places.tell(actor(request), name, id, body.site))


@router.delete(PATH + "/place", response={204: None})
def forget_place(request: HttpRequest, name: str, id: str) -> Status[None]:
    """Forgets where the element's user is."""
    places.forget(actor(request), name, id)
    return Status(204, None)


@router.get(PATH + "/state", response=KeptPage)
def state(
    request: HttpRequest,
    name: str,
    id: str,
    key: str = Query("", max_length=1000),
    after: str | None = Query(None, max_length=4000),
    limit: int = Query(20, ge=1, le=LIMIT_MAX),
) -> KeptPage:
    """Shows the element's state, key by key, as its node's newest committed batch left it.

    `key` selects keys that begin with it. For windows and keyed aggregates it selects keys that contain it,
    and one request looks through some thousand of them. `after` is the `next` of the page before.
    """
    return kept_page(pipeline_named(name), id, key, after, limit)


@router.get(PATH + "/log", response=NodeLog)
def log(
    request: HttpRequest,
    name: str,
    id: str,
    search: str = Query("", max_length=SEARCH_MAX),
    level: Level = "DEBUG",
    limit: int = Query(200, ge=1, le=LINES_MAX),
) -> NodeLog:
    """Returns the newest lines about the element's group in the log of the node that runs it, oldest first.
    `level` is the least severe that is wanted."""
    return element_log(actor(request), pipeline_named(name), id, search, level, limit)


@router.get(PATH + "/checkpoints", response=Checkpoints)
def checkpoints(request: HttpRequest, name: str, id: str) -> Checkpoints:
    """Lists the checkpoints in the central store, newest first."""
    pipeline = pipeline_named(name)
    element_named(pipeline, id)
    deployment = active_deployment(pipeline)
    return {"checkpoints": checkpoints_of(deployment.pk, group_id(deployment, id)) if deployment else []}


@router.post(PATH + "/checkpoints", response={202: Requested})
def take_checkpoint(request: HttpRequest, name: str, id: str) -> Status[Requested]:
    """Asks the element's node for a checkpoint now. It is listed as soon as it is stored."""
    element_actions.take_checkpoint(actor(request), name, id)
    return Status(202, {"status": "requested"})


@router.get(PATH + "/output")
def output(request: HttpRequest, name: str, id: str) -> StreamingHttpResponse:
    """Returns what a file sink has written, from the node that owns it."""
    pipeline = pipeline_named(name)
    found = element_named(pipeline, id)
    deployment = active_deployment(pipeline)
    if deployment is None or found["node"] is None:
        raise Conflict(
            f'"{found["title"]}" is not deployed, so it has no output to download.',
            next="Deploy the pipeline first.",
        )
    node = Node.objects.filter(name=found["node"]).first()
    if node is None or not node.url or not node.up:
        raise BackendAway(
            f'The node {found["node"]}, which holds the output of "{found["title"]}", does not answer.',
            safe="What was written is part of the element's checkpoints.",
            next="Restore the element on another node, then download it.",
        )
    headers, parts = open_output(node.name, node.url, f"{deployment.pk}.{group_id(deployment, id)}", id)
    headers["content-disposition"] = f'attachment; filename="{name}-{id}.csv"'
    return StreamingHttpResponse(in_thread(parts), content_type="text/csv", headers=headers)
