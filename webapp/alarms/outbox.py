"""Puts messages into the outbox: when an alarm changes, in the same transaction; and when time has passed.

Alarms of one route that come within its waiting time share a message. An alarm of an element whose node does
not answer is told with the node's alarm, or not at all: a node that dies is one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from pydantic import ValidationError

from webapp.alarms.models import Alarm, Channel, Message, Route, Told
from webapp.alarms.routing import Reason, RouteSpec, Told as ToldFacts, due, is_about, is_on_call
from webapp.alarms.state import Change, is_silent

MESSAGES_KEPT = 5_000
CHANNEL_FAILS_AFTER = timedelta(minutes=5)


def tell(told: Sequence[tuple[Alarm, Change]]) -> None:
    """Belongs into the transaction in which the alarms have changed."""
    wanted = [(alarm, change) for alarm, change in told if change.kind in ("raised", "worse", "cleared")]
    routes = _routes() if wanted else []
    if not routes:
        return
    now = timezone.now()
    for alarm, change in wanted:
        for route, spec in routes:
            if change.kind == "cleared":
                _tell_cleared(route, spec, alarm, now)
            elif is_about(spec, alarm.severity, alarm.pipeline, alarm.site):
                _tell_raised(route, spec, alarm, change.kind == "worse", now)


def plan() -> None:
    """Puts what is due by now into the outbox: first messages that had to wait, repetitions, escalations."""
    now = timezone.now()
    routes = _routes()
    if not routes:
        return
    waiting = Alarm.objects.filter(cleared_at=None, acknowledged_at=None)
    waiting = waiting.exclude(silenced_until__gt=now).order_by("id")[:1000]
    alarms = list(waiting)
    silent = _silent_nodes()
    known = {(each.alarm_id, each.route_id): each for each in Told.objects.filter(alarm__in=alarms)}
    for alarm in alarms:
        for route, spec in routes:
            if not is_about(spec, alarm.severity, alarm.pipeline, alarm.site):
                continue
            row = known.get((alarm.pk, route.pk))
            if row is None and alarm.element and alarm.node in silent:
                continue  # it is told with its node
            facts = ToldFacts(row.first_at, row.last_at, row.escalated_at) if row is not None else None
            for reason in due(spec, alarm.state, facts, now):
                _plan_one(route, spec, alarm, reason, now)


def _plan_one(route: Route, spec: RouteSpec, alarm: Alarm, reason: Reason, now: datetime) -> None:
    """Locked: a person may acknowledge the alarm meanwhile."""
    with transaction.atomic():
        current = Alarm.objects.select_for_update().get(pk=alarm.pk)
        if current.cleared_at is not None or current.acknowledged_at is not None:
            return
        if reason == "raised":
            _tell_raised(route, spec, current, False, now)
            return
        row = Told.objects.get(alarm=current, route=route)
        if reason == "repeat":
            row.last_at = now
            _put(route, spec, spec.channels, "repeat", current, now)
        else:
            row.escalated_at = now
            _put(route, spec, spec.escalate_to, "escalation", current, now)
        row.save(update_fields=["last_at", "escalated_at"])


def _tell_raised(route: Route, spec: RouteSpec, alarm: Alarm, worse: bool, now: datetime) -> None:
    if is_silent(alarm.state, now) or not is_on_call(spec, now) or _follows(alarm):
        return
    row, new = Told.objects.get_or_create(
        alarm=alarm, route=route, defaults={"first_at": now, "last_at": now}
    )
    if new or worse:
        _put(route, spec, spec.channels, "raised" if new else "worse", alarm, now)
    if not new and worse:
        Told.objects.filter(pk=row.pk).update(last_at=now)


def _tell_cleared(route: Route, spec: RouteSpec, alarm: Alarm, now: datetime) -> None:
    """Only those who were told that it was raised."""
    row = Told.objects.filter(alarm=alarm, route=route).first()
    if row is None or not spec.tells_cleared or is_silent(alarm.state, now):
        return
    channels = [*spec.channels, *(spec.escalate_to if row.escalated_at else ())]
    _put(route, spec, channels, "cleared", alarm, now)


def _follows(alarm: Alarm) -> bool:
    """Returns whether the alarm follows from the silence of its node, of which people are told."""
    return bool(alarm.element) and alarm.node in _silent_nodes()


def _silent_nodes() -> set[str]:
    """Returns the nodes with an alarm that they do not answer."""
    of_nodes = Alarm.objects.filter(element="", cleared_at=None, source=Alarm.Source.RULE)
    return set(of_nodes.filter(rule__rule__metric="node_silent").values_list("node", flat=True))


def _put(
    route: Route, spec: RouteSpec, channels: Iterable[int], reason: Reason, alarm: Alarm, now: datetime
) -> None:
    """Adds the alarm to a message that waits, or makes one. A channel is not told that it fails itself."""
    wait = timedelta(seconds=spec.wait_s)
    for channel in Channel.objects.filter(pk__in=set(channels), enabled=True):
        if alarm.source == Alarm.Source.CHANNEL and alarm.channel == channel.pk:
            continue
        # Locked: what is being sent already gets no more alarms.
        open = Message.objects.select_for_update().filter(
            channel=channel, route=route, attempts=0, sent_at=None, given_up_at=None
        )
        together = ("raised", "worse", "cleared") if reason in ("raised", "worse", "cleared") else (reason,)
        message = open.filter(reason__in=together).order_by("created_at").first()
        if message is None:
            message = Message.objects.create(
                channel=channel, route=route, reason=reason, created_at=now, due_at=now + wait
            )
        message.alarms.add(alarm)


def test_message(channel: Channel) -> Message:
    """Puts a message into the outbox that says that nothing is wrong."""
    return Message.objects.create(channel=channel, reason="test")


def prune() -> None:
    """Deletes the oldest messages that are done, beyond MESSAGES_KEPT."""
    done = Message.objects.filter(Q(sent_at__isnull=False) | Q(given_up_at__isnull=False))
    oldest = done.order_by("-created_at").values_list("created_at", flat=True)[
        MESSAGES_KEPT : MESSAGES_KEPT + 1
    ]
    at = oldest.first()
    if at is not None:
        done.filter(created_at__lte=at).delete()


def _routes() -> list[tuple[Route, RouteSpec]]:
    found = []
    for route in Route.objects.filter(enabled=True):
        try:
            found.append((route, RouteSpec.model_validate(route.spec)))
        except ValidationError:
            continue  # of another version; the page says so
    return found
