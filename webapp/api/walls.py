"""Routes about walls. Those that only read are also for a link, which opens one wall."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.api.accounts import Body
from webapp.api.authentication import SessionAuth, TokenAuth, actor
from webapp.api.pipelines import etag, wanted_revision
from webapp.walls import actions, looking, schemas, selectors
from webapp.walls.links import LINK_PREFIX, used_link
from webapp.walls.models import WallLink
from webapp.walls.tiles import Tiles

router = Router(tags=["walls"])


class WallAuth(TokenAuth):
    """Finds out who looks at a wall: a user's token, or the secret of a link to this wall."""

    def authenticate(self, request: HttpRequest, token: str) -> User | WallLink:
        if not token.startswith(LINK_PREFIX):
            return super().authenticate(request, token)
        match = request.resolver_match
        return used_link(token, str(match.kwargs.get("id", "")) if match else "")


OPEN_TO_LINKS = [WallAuth(), SessionAuth()]


class NewWall(Body):
    title: str = Field(min_length=1, max_length=80)


class WallIn(NewWall):
    tiles: Tiles


class LinkIn(Body):
    name: str = Field("", max_length=80)


@router.get("/walls", response=list[schemas.WallItem])
def walls(request: HttpRequest) -> list[schemas.WallItem]:
    """Lists the walls, without their tiles."""
    return selectors.all_walls()


@router.post("/walls", response={201: schemas.Wall})
def create(request: HttpRequest, response: HttpResponse, body: NewWall) -> Status[schemas.Wall]:
    """Creates an empty wall. Its id is made of the title, and stays when the title changes."""
    wall = actions.create(actor(request), body.title)
    response.headers["ETag"] = etag(wall.revision)
    return Status(201, selectors.wall_json(wall))


@router.get("/walls/{id}", response=schemas.Wall, auth=OPEN_TO_LINKS)
def wall(request: HttpRequest, response: HttpResponse, id: str) -> schemas.Wall:
    """Returns a wall with its tiles. `ETag` is the revision that a save has to name."""
    found = selectors.wall_with(id)
    response.headers["ETag"] = etag(found.revision)
    return selectors.wall_json(found, shared=isinstance(request.auth, WallLink))


@router.put("/walls/{id}", response=schemas.Wall)
def save(request: HttpRequest, response: HttpResponse, id: str, body: WallIn) -> schemas.Wall:
    """Replaces the title and the tiles. Needs `If-Match: "<revision>"` (else 428). Answers 409 with the saved
    wall when another save came first."""
    require(actor(request), Role.OPERATOR, "change walls")
    found = actions.save(actor(request), id, body.title, body.tiles, wanted_revision(request))
    response.headers["ETag"] = etag(found.revision)
    return selectors.wall_json(found)


@router.delete("/walls/{id}", response={204: None})
def delete(request: HttpRequest, id: str) -> Status[None]:
    """Deletes a wall. Its links end."""
    actions.delete(actor(request), id)
    return Status(204, None)


@router.get("/walls/{id}/links", response=list[schemas.WallLink])
def links(request: HttpRequest, id: str) -> list[schemas.WallLink]:
    """Lists the links that show the wall to people without an account, without their secrets."""
    require(actor(request), Role.OPERATOR, "see the links of walls")
    return selectors.links_of(selectors.wall_with(id))


@router.post("/walls/{id}/links", response={201: schemas.WallLinkMade})
def make_link(request: HttpRequest, id: str, body: LinkIn) -> Status[schemas.WallLinkMade]:
    """Makes a link to the wall. Its secret is in this answer only. Whoever sends it as bearer may look at
    this wall. It ends after 30 days without use."""
    link, secret = actions.make_link(actor(request), id, body.name)
    return Status(201, {**selectors.link_json(link), "secret": secret})


@router.delete("/walls/{id}/links/{int:link}", response={204: None})
def revoke_link(request: HttpRequest, id: str, link: int) -> Status[None]:
    """Revokes a link. Whoever has it sees nothing any more."""
    actions.revoke_link(actor(request), id, link)
    return Status(204, None)


@router.post("/walls/{id}/look", response=schemas.WallLook, auth=OPEN_TO_LINKS)
def look(request: HttpRequest, id: str, body: looking.LookWanted) -> schemas.WallLook:
    """Returns what all tiles show, and changes nothing: figures, the newest rows of tables, pictures, and the
    states of the elements whose rows they show; beside it the curves and loads that the body asks for. Rows
    have only the columns of their tile, and no key. One consumer reads all of them. What is wrong with a
    tile, a curve or a load is its `problem`, and the others have their answers."""
    return looking.look(selectors.wall_with(id), body)
