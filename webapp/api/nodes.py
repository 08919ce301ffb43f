from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from pipeline_runtime.model.node_log import LINES_MAX, SEARCH_MAX, Level
from webapp.api.accounts import Body
from webapp.api.authentication import actor, bearer_secret
from webapp.handovers import node_removal
from webapp.handovers.schemas import NodeFailure
from webapp.monitoring.if_it_fails import if_node_fails
from webapp.monitoring.node_log import node_log
from webapp.monitoring.nodes import all_nodes, one_node
from webapp.monitoring.schemas import NodeLog
from webapp.monitoring.selectors import node_history
from webapp.nodes import actions
from webapp.nodes.schemas import Admission, Invited, Node, NodeHistory
from webapp.nodes.selectors import node_named

router = Router(tags=["nodes"])
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class Invitation(Body):
    name: str = Field(max_length=60)


class NodeChange(Body):
    site: str = Field(max_length=60)


class Enrolment(Body):
    name: str = Field(max_length=60)
    version: str = Field(max_length=40)
    cores: int = Field(ge=1, le=4096)
    url: str = Field(max_length=200, pattern=r"^https?://[A-Za-z0-9.:_\[\]-]+/?$")
    token: str | None = Field(default=None, max_length=200)  # instead of the Authorization header


@router.get("/nodes", response=list[Node])
def nodes(request: HttpRequest) -> list[Node]:
    """Lists the nodes as they were last heard."""
    return all_nodes()


@router.post("/nodes", response={201: Invited})
def invite(request: HttpRequest, body: Invitation) -> Status[Invited]:
    """Returns a one-time token and the command to run on the new machine. The token is shown only this
    once."""
    token, secret = actions.invite(actor(request), body.name)
    url = request.build_absolute_uri("/").rstrip("/")
    return Status(
        201,
        {
            "name": body.name,
            "token": secret,
            "expires_at": token.expires_at.isoformat(),
            "command": f'FOGLINE_TOKEN={secret} make node ARGS="--join {url} --name {body.name}"',
            "version": settings.FOGLINE_VERSION,
            "url": url,
            "kafka": settings.FOGLINE.kafka,
            "central_url": central_url(request),
            "warnings": reach_warnings(url),
        },
    )


@router.post("/nodes/enrol", auth=None, response=Admission)
def enrol(request: HttpRequest, body: Enrolment) -> Admission:
    """The new machine calls this, with the enrolment token as bearer (or in the body)."""
    machine = actions.Machine(body.name, body.version, body.cores, body.url)
    node = actions.enrol(body.token or bearer_secret(request), machine)
    return actions.admission_document(node.name, central_url(request))


@router.get("/nodes/{name}", response=Node)
def node(request: HttpRequest, name: str) -> Node:
    """Returns one node as it was last heard."""
    return one_node(name)


@router.patch("/nodes/{name}", response=Node)
def change(request: HttpRequest, name: str, body: NodeChange) -> Node:
    """Changes the site of the node."""
    actions.set_site(actor(request), name, body.site)
    return one_node(name)


@router.get("/nodes/{name}/history", response=NodeHistory)
def history(request: HttpRequest, name: str) -> NodeHistory:
    """Returns the points of the node's curves, oldest first."""
    node_named(name)
    return {"points": node_history(name)}


@router.get("/nodes/{name}/log", response=NodeLog)
def log(
    request: HttpRequest,
    name: str,
    search: str = Query("", max_length=SEARCH_MAX),
    level: Level = "DEBUG",
    limit: int = Query(200, ge=1, le=LINES_MAX),
) -> NodeLog:
    """Returns the newest lines that the node has logged since it started, oldest first. `level` is the least
    severe that is wanted."""
    return node_log(actor(request), name, search, level, limit)


@router.get("/nodes/{name}/failure", response=NodeFailure)
def failure(request: HttpRequest, name: str) -> NodeFailure:
    """Says what would happen to its elements if it died now."""
    return if_node_fails(name)


@router.post("/nodes/{name}/cordon", response=Node)
def cordon(request: HttpRequest, name: str) -> Node:
    """Cordons the node: it takes nothing new. What runs there goes on."""
    actions.set_cordoned(actor(request), name, True)
    return one_node(name)


@router.post("/nodes/{name}/uncordon", response=Node)
def uncordon(request: HttpRequest, name: str) -> Node:
    """Lets the node take elements again, and ends its drain."""
    actions.set_cordoned(actor(request), name, False)
    return one_node(name)


@router.post("/nodes/{name}/drain", response={202: Node})
def drain(request: HttpRequest, name: str) -> Status[Node]:
    """Cordons the node and moves everything that runs there to other nodes."""
    actions.drain(actor(request), name)
    return Status(202, one_node(name))


@router.delete("/nodes/{name}", response={204: None})
def remove(request: HttpRequest, name: str) -> Status[None]:
    """Revokes open invitations for the name, and removes the node if it has nothing to run."""
    node_removal.remove(actor(request), name)
    return Status(204, None)


def central_url(request: HttpRequest) -> str:
    """Returns the central chunk service's URL for a machine that reaches the dashboard as this request
    does."""
    host = urlsplit(request.build_absolute_uri("/")).hostname or "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.FOGLINE.chunk_port}"


def reach_warnings(url: str) -> list[str]:
    """Returns warnings about addresses that another machine could not reach, for the person who adds it."""
    found = []
    if urlsplit(url).hostname in LOCAL_HOSTS:
        found.append(
            "You see the dashboard under an address of this machine alone: for another machine, open it "
            "under one that it can reach (FOGLINE_HOST)."
        )
    for what, address, variable in (
        ("Kafka", settings.FOGLINE.kafka, "FOGLINE_KAFKA"),
        ("Redis", settings.FOGLINE.redis_url.rpartition("@")[2].removeprefix("redis://"), "REDIS_URL"),
    ):
        if any(address.startswith(f"{host}:") for host in LOCAL_HOSTS):
            found.append(
                f"{what} listens on {address}, which only this machine can reach: set {variable} to "
                "an address that others can reach."
            )
    return found
