"""Routes about connections: how elements reach systems outside. No answer holds a secret."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from pipeline_runtime.model.connectors import FIND_MAX, PATH_MAX
from pipeline_runtime.model.simulated import SIMULATED
from webapp.accounts.models import Role
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.connections import actions, schemas, selectors
from webapp.connections.models import Connection
from webapp.placements.connection_uses import uses_of_connections

router = Router(tags=["connections"])


class FieldsIn(Body):
    fields: dict[str, Any]


class NewConnection(FieldsIn):
    name: str = Field(min_length=1, max_length=60)
    kind: str = Field(max_length=60)


class TestIn(Body):
    node: str = Field("", max_length=120)
    path: str = Field("", max_length=PATH_MAX)
    find: str = Field("", max_length=FIND_MAX)
    fields: dict[str, Any] | None = None


class TestNew(FieldsIn):
    kind: str = Field(max_length=60)
    node: str = Field("", max_length=120)


@router.get("/connections", response=list[schemas.ConnectionItem])
def connections(request: HttpRequest) -> list[schemas.ConnectionItem]:
    """Lists the connections, then those of the simulated machines. An admin also sees their fields, without
    the secret ones."""
    uses, whole = uses_of_connections(), actor(request).may(Role.ADMIN)
    rows = Connection.objects.select_related("changed_by")
    made = [selectors.item(each, uses.get(each.name, ()), whole=whole) for each in rows]
    simulated = [selectors.simulated_item(each, uses.get(each.name, ())) for each in SIMULATED.values()]
    return [*made, *simulated]


@router.get("/connection-kinds", response=list[schemas.ConnectionKind])
def connection_kinds(request: HttpRequest) -> list[schemas.ConnectionKind]:
    """Lists the kinds of connections that the installed operators know, with the forms of their fields."""
    return selectors.all_kinds()


@router.post("/connections", response={201: schemas.ConnectionItem})
def create(request: HttpRequest, body: NewConnection) -> Status[schemas.ConnectionItem]:
    """Makes a connection. Needs the role admin."""
    made = actions.create(actor(request), body.name, body.kind, body.fields)
    return Status(201, selectors.item(made, (), whole=True))


@router.put("/connections/{name}", response=schemas.ConnectionItem)
def change(request: HttpRequest, name: str, body: FieldsIn) -> schemas.ConnectionItem:
    """Replaces the fields. A secret field that is not given stays as it is; null removes it. Elements that
    use the connection connect again. Needs the role admin."""
    found = actions.change(actor(request), name, body.fields)
    return selectors.item(found, uses_of_connections().get(name, ()), whole=True)


@router.delete("/connections/{name}", response={204: None})
def remove(request: HttpRequest, name: str) -> Status[None]:
    """Deletes a connection that no deployed element uses. Needs the role admin."""
    actions.remove(actor(request), name, uses_of_connections().get(name, ()))
    return Status(204, None)


@router.post("/connections/{name}/test", response=schemas.ConnectionTested)
def test(request: HttpRequest, name: str, body: TestIn) -> schemas.ConnectionTested:
    """Tests the connection on a node, and returns the first rows or the reason why not. `path` says what of
    `found` to look into. `find` is a part of a name, to be looked for in the whole system instead. `fields`
    are tried in place of the stored ones, for an admin."""
    look = actions.Look(body.path, body.find)
    return actions.try_stored(actor(request), name, body.node, look, body.fields)


@router.post("/connection-test", response=schemas.ConnectionTested)
def test_new(request: HttpRequest, body: TestNew) -> schemas.ConnectionTested:
    """Tries a connection that is not made yet. Needs the role admin."""
    return actions.try_new(actor(request), body.kind, body.node, body.fields)
