"""Channels, routes and the log of messages: what people do with them, and what they are shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Prefetch, Q, QuerySet, Sum
from django.utils import timezone

from pipeline_runtime.sealing import seal
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.alarms import schemas
from webapp.alarms.channels import SCHEMES, UrlRefused, checked
from webapp.alarms.models import Alarm, Channel, Message, Route
from webapp.alarms.outbox import test_message
from webapp.alarms.routing import CHANNELS_MAX, ROUTES_MAX, RouteSpec
from webapp.alarms.sealed import PURPOSE
from webapp.alarms.taking import clear_all
from webapp.alarms.texts import checked_name, refuse
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.moments import iso_of
from webapp.problems import Conflict, Missing, TooSoon

Named = TypeVar("Named", Channel, Route)
TEST_EACH_S = 10
LIST = "See the page Alarms."


# -- channels ----------------------------------------------------------------------------------------


def create_channel(actor: User, name: str, url: str, enabled: bool = True) -> Channel:
    """Makes a channel. Seals its URL, which no answer, log or audit entry shows."""
    require(actor, Role.ADMIN, "make channels for alarms")
    channel = Channel(name=checked_name(name), enabled=enabled, created_by=actor)
    _set_url(channel, url)
    _save_new(channel, CHANNELS_MAX, "channels", actor, "alarm_channel.create", kind=SCHEMES[channel.scheme])
    return channel


@transaction.atomic
def change_channel(actor: User, id: int, url: str | None = None, enabled: bool | None = None) -> Channel:
    require(actor, Role.ADMIN, "change channels of alarms")
    channel = _locked(Channel, id, "channel")
    detail: dict[str, Any] = {}
    if url is not None:
        _set_url(channel, url)
        channel.failing_since, channel.error = None, ""
        detail["kind"] = SCHEMES[channel.scheme]
    if enabled is not None and enabled != channel.enabled:
        channel.enabled = detail["enabled"] = enabled
    if detail:
        channel.save()
        if not channel.enabled:
            clear_channel(channel.pk, "The channel was switched off.")
        audit(actor, "alarm_channel.change", channel.name, **detail)
        announce()
    return channel


@transaction.atomic
def remove_channel(actor: User, id: int) -> None:
    """Removes a channel with its messages."""
    require(actor, Role.ADMIN, "remove channels of alarms")
    channel = _locked(Channel, id, "channel")
    used = [route.name for route in Route.objects.all() if id in _channels_of(route)]
    if used:
        raise Conflict(
            f'"{channel.name}" is used by {", ".join(used)}.',
            safe="Nothing was changed.",
            next="Take the channel out of these routes first, or switch the channel off.",
        )
    clear_channel(channel.pk, "The channel was removed.")
    channel.delete()
    audit(actor, "alarm_channel.delete", channel.name)
    announce()


@transaction.atomic
def try_channel(actor: User, id: int) -> Message:
    """Sends a test message by the channel."""
    require(actor, Role.OPERATOR, "send test messages")
    channel = _locked(Channel, id, "channel")
    since = timezone.now() - timedelta(seconds=TEST_EACH_S)
    if Message.objects.filter(channel=channel, reason="test", created_at__gt=since).exists():
        raise TooSoon(
            f'A test of "{channel.name}" was ordered just now.',
            safe="That one is sent.",
            next=f"Wait {TEST_EACH_S} s for its outcome.",
            retry_after_s=TEST_EACH_S,
        )
    message = test_message(channel)
    audit(actor, "alarm_channel.test", channel.name)
    announce()
    return message


def clear_channel(id: int, why: str) -> None:
    """Clears the alarm that says that the channel takes no messages."""
    clear_all(Alarm.objects.filter(source=Alarm.Source.CHANNEL, channel=id, cleared_at=None), why)


def _set_url(channel: Channel, url: str) -> None:
    try:
        channel.scheme = checked(url)
    except UrlRefused as error:
        refuse("url", str(error))
    channel.url = seal(url.strip(), settings.FOGLINE.secret_key, PURPOSE)


def _channels_of(route: Route) -> set[int]:
    return {*route.spec.get("channels", ()), *route.spec.get("escalate_to", ())}


def channels() -> list[schemas.AlarmChannel]:
    return [_channel_json(row) for row in _channels()]


def channel_with(id: int) -> schemas.AlarmChannel:
    found = _channels().filter(pk=id).first()
    if found is None:
        raise Missing(f"There is no channel {id}.", next=LIST)
    return _channel_json(found)


def _channels() -> QuerySet[Channel]:
    waits = Q(messages__sent_at=None, messages__given_up_at=None)
    return (
        Channel.objects.select_related("created_by")
        .annotate(waiting=Count("messages", filter=waits))
        .order_by("name")
    )


def _channel_json(row: Channel) -> schemas.AlarmChannel:
    return {
        "id": row.pk,
        "name": row.name,
        "kind": SCHEMES.get(row.scheme, row.scheme),
        "enabled": row.enabled,
        "created_by": row.created_by.username if row.created_by else None,
        "created_at": row.created_at.isoformat(),
        "worked_at": iso_of(row.worked_at),
        "failing_since": iso_of(row.failing_since),
        "error": row.error,
        "waiting": row.waiting,
    }


# -- routes ------------------------------------------------------------------------------------------


def create_route(actor: User, name: str, spec: RouteSpec, enabled: bool = True) -> Route:
    require(actor, Role.OPERATOR, "make routes of alarms")
    _check_channels(spec)
    stored = spec.model_dump(mode="json")
    route = Route(name=checked_name(name), spec=stored, enabled=enabled, created_by=actor)
    _save_new(route, ROUTES_MAX, "routes", actor, "alarm_route.create", spec=stored, enabled=enabled)
    return route


@transaction.atomic
def change_route(actor: User, id: int, spec: RouteSpec | None = None, enabled: bool | None = None) -> Route:
    """Changes the given fields. A second call changes nothing."""
    require(actor, Role.OPERATOR, "change routes of alarms")
    route = _locked(Route, id, "route")
    changed: dict[str, Any] = {}
    if spec is not None and (stored := spec.model_dump(mode="json")) != route.spec:
        _check_channels(spec)
        changed["spec"] = stored
    if enabled is not None and enabled != route.enabled:
        changed["enabled"] = enabled
    if changed:
        before = {name: getattr(route, name) for name in changed}
        for name, value in changed.items():
            setattr(route, name, value)
        route.save(update_fields=list(changed))
        audit(actor, "alarm_route.change", route.name, before=before, **changed)
        announce()
    return route


@transaction.atomic
def remove_route(actor: User, id: int) -> None:
    """Removes a route. Messages that wait are still sent."""
    require(actor, Role.OPERATOR, "remove routes of alarms")
    route = _locked(Route, id, "route")
    route.delete()
    audit(actor, "alarm_route.delete", route.name)
    announce()


def _check_channels(spec: RouteSpec) -> None:
    known = set(Channel.objects.values_list("pk", flat=True))
    for path in ("channels", "escalate_to"):
        for id in getattr(spec, path):
            if id not in known:
                refuse(f"spec.{path}", f"names the channel {id}, which does not exist")


def routes() -> list[schemas.AlarmRoute]:
    return [_route_json(row) for row in Route.objects.select_related("created_by")]


def route_with(id: int) -> schemas.AlarmRoute:
    found = Route.objects.select_related("created_by").filter(pk=id).first()
    if found is None:
        raise Missing(f"There is no route {id}.", next=LIST)
    return _route_json(found)


def _route_json(row: Route) -> schemas.AlarmRoute:
    return {
        "id": row.pk,
        "name": row.name,
        "spec": RouteSpec.model_validate(row.spec),
        "enabled": row.enabled,
        "created_by": row.created_by.username if row.created_by else None,
        "created_at": row.created_at.isoformat(),
    }


# -- both --------------------------------------------------------------------------------------------


def _save_new(row: Named, most: int, called: str, actor: User, action: str, **detail: Any) -> None:
    try:
        with transaction.atomic():
            if type(row).objects.count() >= most:
                raise Conflict(
                    f"There are {most} {called}, which is the most that is allowed.",
                    safe="Nothing was changed.",
                    next=f"Remove one of the {called} first.",
                )
            row.save()
            audit(actor, action, row.name, **detail)
            announce()
    except IntegrityError as error:
        raise Conflict(
            f'"{row.name}" exists already.', safe="Nothing was changed.", next="Choose another name."
        ) from error


def _locked(model: type[Named], id: int, called: str) -> Named:
    row = model.objects.select_for_update().filter(pk=id).first()
    if row is None:
        raise Missing(f"There is no {called} {id}.", next=LIST)
    return row


# -- the log -----------------------------------------------------------------------------------------


def messages(limit: int, alarm: int | None = None, channel: int | None = None) -> schemas.AlarmMessages:
    """Returns the newest messages, and what they count together."""
    rows = (
        Message.objects.select_related("channel", "route")
        .prefetch_related(Prefetch("alarms", Alarm.objects.only("pk")))
        .defer("body", "data")
        .order_by("-created_at")
    )
    if alarm is not None:
        rows = rows.filter(alarms=alarm)
    if channel is not None:
        rows = rows.filter(channel=channel)
    day = Message.objects.filter(created_at__gt=timezone.now() - timedelta(days=1))
    return {
        "messages": [message_json(row) for row in rows[:limit]],
        "waiting": Message.objects.filter(sent_at=None, given_up_at=None).count(),
        "repeats": day.aggregate(all=Sum("repeats"))["all"] or 0,
    }


def message_json(row: Message) -> schemas.AlarmMessage:
    return {
        "id": str(row.pk),
        "channel": row.channel.name,
        "route": row.route.name if row.route else None,
        "reason": row.reason,
        "subject": row.subject,
        "alarms": [alarm.pk for alarm in row.alarms.all()],
        "created_at": row.created_at.isoformat(),
        "due_at": row.due_at.isoformat(),
        "attempts": row.attempts,
        "repeats": row.repeats,
        "sent_at": iso_of(row.sent_at),
        "given_up_at": iso_of(row.given_up_at),
        "error": row.error,
    }
