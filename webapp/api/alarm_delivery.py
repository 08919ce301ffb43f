"""HTTP routes for the delivery of alarms: channels, routes and messages."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from webapp.alarms import delivery, schemas
from webapp.alarms.channels import URL_MAX
from webapp.alarms.routing import RouteSpec
from webapp.api.accounts import Body
from webapp.api.authentication import actor

router = Router(tags=["alarms"])


class AlarmChannelIn(Body):
    name: str = Field(min_length=1, max_length=60)
    url: str = Field(min_length=1, max_length=URL_MAX)
    enabled: bool = True


class AlarmChannelChange(Body):
    url: str | None = Field(None, min_length=1, max_length=URL_MAX)
    enabled: bool | None = None


class AlarmRouteIn(Body):
    name: str = Field(min_length=1, max_length=60)
    spec: RouteSpec
    enabled: bool = True


class AlarmRouteChange(Body):
    spec: RouteSpec | None = None
    enabled: bool | None = None


@router.get("/alarms/channels", response=list[schemas.AlarmChannel])
def channels(request: HttpRequest) -> list[schemas.AlarmChannel]:
    """Lists the channels, without their URLs."""
    return delivery.channels()


@router.post("/alarms/channels", response={201: schemas.AlarmChannel})
def create_channel(request: HttpRequest, body: AlarmChannelIn) -> Status[schemas.AlarmChannel]:
    """Makes a channel. `url` is one of apprise, such as `mailtos://user:password@example.org?to=you@example.org`.
    No answer ever has it again."""
    made = delivery.create_channel(actor(request), body.name, body.url, body.enabled)
    return Status(201, delivery.channel_with(made.pk))


@router.patch("/alarms/channels/{int:id}", response=schemas.AlarmChannel)
def change_channel(request: HttpRequest, id: int, body: AlarmChannelChange) -> schemas.AlarmChannel:
    """Changes a channel's URL, or switches it off or on. Its name stays."""
    return delivery.channel_with(delivery.change_channel(actor(request), id, body.url, body.enabled).pk)


@router.delete("/alarms/channels/{int:id}", response={204: None})
def remove_channel(request: HttpRequest, id: int) -> Status[None]:
    """Removes a channel that no route uses, with its part of the log."""
    delivery.remove_channel(actor(request), id)
    return Status(204, None)


@router.post("/alarms/channels/{int:id}/test", response={202: schemas.AlarmMessage})
def try_channel(request: HttpRequest, id: int) -> Status[schemas.AlarmMessage]:
    """Sends a test message by the channel. The log says what came of it."""
    return Status(202, delivery.message_json(delivery.try_channel(actor(request), id)))


@router.get("/alarms/routes", response=list[schemas.AlarmRoute])
def routes(request: HttpRequest) -> list[schemas.AlarmRoute]:
    """Lists the routes."""
    return delivery.routes()


@router.post("/alarms/routes", response={201: schemas.AlarmRoute})
def create_route(request: HttpRequest, body: AlarmRouteIn) -> Status[schemas.AlarmRoute]:
    """Makes a route: which alarms go to which channels, and when."""
    made = delivery.create_route(actor(request), body.name, body.spec, body.enabled)
    return Status(201, delivery.route_with(made.pk))


@router.patch("/alarms/routes/{int:id}", response=schemas.AlarmRoute)
def change_route(request: HttpRequest, id: int, body: AlarmRouteChange) -> schemas.AlarmRoute:
    """Changes a route. Its name stays."""
    return delivery.route_with(delivery.change_route(actor(request), id, body.spec, body.enabled).pk)


@router.delete("/alarms/routes/{int:id}", response={204: None})
def remove_route(request: HttpRequest, id: int) -> Status[None]:
    """Removes a route. Messages that wait are sent all the same."""
    delivery.remove_route(actor(request), id)
    return Status(204, None)


@router.get("/alarms/messages", response=schemas.AlarmMessages)
def messages(
    request: HttpRequest,
    limit: int = Query(100, ge=1, le=500),
    alarm: int | None = Query(None, ge=1, le=2**63 - 1),
    channel: int | None = Query(None, ge=1, le=2**63 - 1),
) -> schemas.AlarmMessages:
    """Lists the messages about alarms, newest first: those that wait, that are sent, and that were given
    up."""
    return delivery.messages(limit, alarm, channel)
