"""Puts messages about alarms into the outbox.

`tell` does so in the transaction in which an alarm changes. `plan` does so later, for messages that are due
at a certain time.

Alarms of one route that come within the route's waiting time share a message. If a node does not answer, the
alarms of its elements are in the message about the node, or in no message. They wait for the alarm about the
node if they come first. So a node that dies causes one message, not one for each element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from pydantic import ValidationError

from webapp.alarms.models import Alarm, Channel, Message, Route, Rule, Told
from webapp.alarms.routing import Reason, RouteSpec, due, is_about, is_on_call
from webapp.alarms.rules import MetricRule, is_awaited
from webapp.alarms.state import Change, is_silent, is_worse
from webapp.nodes.models import Node

MESSAGES_KEPT = 5_000
PAGE = 1000
"""How many alarms one query of the database reads."""
CHANNEL_FAILS_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class _Facts:
    """The facts that hold for all alarms of one call of `tell` or `plan`."""

    now: datetime
    channels: Mapping[int, Channel]
    """id -> channel, for the channels that are switched on"""
    told_of_nodes: frozenset[tuple[int, str]]
    """pairs of route and node: the route has sent a message that the node does not answer, and the node's
    alarm is open and not silenced"""
    awaited: frozenset[tuple[int, str]]
    """pairs of route and node: the node is silent, and the route will soon send a message about that"""

    def covers(self, route: int, node: str) -> bool:
        """Returns whether a message about the node stands for the alarms of elements there."""
        return (route, node) in self.told_of_nodes or (route, node) in self.awaited


def _facts(now: datetime, routes: Sequence[tuple[Route, RouteSpec]]) -> _Facts:
    of_nodes = Told.objects.filter(
        alarm__source=Alarm.Source.RULE,
        alarm__rule__rule__metric="node_silent",
        alarm__element="",
        alarm__cleared_at=None,
    ).exclude(alarm__silenced_until__gt=now)
    return _Facts(
        now,
        {channel.pk: channel for channel in Channel.objects.filter(enabled=True)},
        frozenset(of_nodes.values_list("route_id", "alarm__node")),
        frozenset(_awaited(now, routes)),
    )


def _awaited(now: datetime, routes: Sequence[tuple[Route, RouteSpec]]) -> Iterator[tuple[int, str]]:
    """The rule about silent nodes waits for some time, and the alarms of a node's elements may come before
    it. So they wait for the node's alarm. They do not wait for long, because control may be late."""
    silent = list(Node.objects.exclude(silent_at=None))
    rules = Rule.objects.filter(enabled=True, rule__metric="node_silent") if silent else ()
    for row in rules:
        with suppress(ValidationError):  # another version of Fogline wrote it
            rule = MetricRule.model_validate(row.rule)
            for node in silent:
                if is_awaited(rule, node.name, node.silent_at or now, now):
                    yield from (
                        (route.pk, node.name)
                        for route, spec in routes
                        if is_about(spec, rule.severity, "", node.place)
                    )


def tell(told: Sequence[tuple[Alarm, Change]]) -> None:
    """Puts messages about changed alarms into the outbox. Call it in the transaction in which the alarms
    changed."""
    wanted = [(alarm, change) for alarm, change in told if change.kind in ("raised", "worse", "cleared")]
    routes = _routes() if wanted else []
    if not routes:
        return
    now = timezone.now()
    # Nodes first, so that the alarms of their elements can join the messages about the nodes.
    of_nodes = [each for each in wanted if not each[0].element]
    of_elements = [each for each in wanted if each[0].element]
    for some in (of_nodes, of_elements):
        facts = _facts(now, routes)
        for alarm, change in some:
            for route, spec in routes:
                if change.kind == "cleared":
                    _tell_cleared(route, spec, alarm, facts)
                elif is_about(spec, alarm.severity, alarm.pipeline, alarm.site):
                    _tell_raised(route, spec, alarm, facts)


def plan() -> None:
    """Puts the messages that are due now into the outbox: repetitions, escalations, and first messages that
    had to wait."""
    now = timezone.now()
    routes = _routes()
    if not routes:
        return
    facts = _facts(now, routes)
    waiting = Alarm.objects.filter(cleared_at=None, acknowledged_at=None).exclude(silenced_until__gt=now)
    alarms = list(waiting.order_by("id")[:PAGE])
    while alarms:
        _plan_some(alarms, routes, facts)
        alarms = list(waiting.filter(pk__gt=alarms[-1].pk).order_by("id")[:PAGE])


def _plan_some(alarms: Sequence[Alarm], routes: Sequence[tuple[Route, RouteSpec]], facts: _Facts) -> None:
    known = {(each.alarm_id, each.route_id): each for each in Told.objects.filter(alarm__in=alarms)}
    for alarm in alarms:
        for route, spec in routes:
            if not is_about(spec, alarm.severity, alarm.pipeline, alarm.site):
                continue
            row = known.get((alarm.pk, route.pk))
            told = row.facts if row is not None else None
            for reason in due(spec, alarm.state, told, facts.now):
                if reason not in ("raised", "worse") or _may_tell(route, spec, alarm, facts):
                    _plan_one(route, spec, alarm, reason, facts)


def _plan_one(route: Route, spec: RouteSpec, alarm: Alarm, reason: Reason, facts: _Facts) -> None:
    """Plans the messages of one alarm for one reason. It locks the alarm's row, because a person may
    acknowledge the alarm meanwhile."""
    with transaction.atomic():
        current = Alarm.objects.select_for_update().get(pk=alarm.pk)
        if current.cleared_at is not None or current.acknowledged_at is not None:
            return
        if reason in ("raised", "worse"):
            _tell_raised(route, spec, current, facts)
            return
        row = Told.objects.get(alarm=current, route=route)
        if reason == "repeat":
            row.last_at = facts.now
            _put(route, spec, spec.channels, "repeat", current, facts)
        else:
            row.escalated_at = facts.now
            _put(route, spec, spec.escalate_to, "escalation", current, facts)
        row.save(update_fields=["last_at", "escalated_at"])


def _may_tell(route: Route, spec: RouteSpec, alarm: Alarm, facts: _Facts) -> bool:
    """Returns whether the route has a channel for the alarm, and no message about the alarm's node stands for
    the alarm."""
    follows = bool(alarm.element) and facts.covers(route.pk, alarm.node)
    return not follows and bool(_channels(spec.channels, alarm, facts))


def _tell_raised(route: Route, spec: RouteSpec, alarm: Alarm, facts: _Facts) -> None:
    """Plans a message if the alarm is new to the route, or if it got worse since the route's last message."""
    now = facts.now
    if is_silent(alarm.state, now) or not is_on_call(spec, now) or not _may_tell(route, spec, alarm, facts):
        return
    row, new = Told.objects.get_or_create(
        alarm=alarm, route=route, defaults={"first_at": now, "last_at": now, "severity": alarm.severity}
    )
    if new:
        _put(route, spec, spec.channels, "raised", alarm, facts)
    elif is_worse(alarm.state.severity, row.facts.severity):
        _put(route, spec, spec.channels, "worse", alarm, facts)
        Told.objects.filter(pk=row.pk).update(last_at=now, severity=alarm.severity)


def _tell_cleared(route: Route, spec: RouteSpec, alarm: Alarm, facts: _Facts) -> None:
    """Plans a message that the alarm is cleared, if the route has sent one that it was raised."""
    row = Told.objects.filter(alarm=alarm, route=route).first()
    if row is None or not spec.tells_cleared or is_silent(alarm.state, facts.now):
        return
    channels = [*spec.channels, *(spec.escalate_to if row.escalated_at else ())]
    _put(route, spec, channels, "cleared", alarm, facts)


def _channels(wanted: Iterable[int], alarm: Alarm, facts: _Facts) -> list[Channel]:
    """Returns the wanted channels that are switched on, sorted by id. It leaves out a channel that the alarm
    itself is about, because that channel fails."""
    itself = alarm.channel if alarm.source == Alarm.Source.CHANNEL else None
    return [facts.channels[id] for id in sorted(set(wanted)) if id in facts.channels and id != itself]


def _put(
    route: Route, spec: RouteSpec, channels: Iterable[int], reason: Reason, alarm: Alarm, facts: _Facts
) -> None:
    """Adds the alarm to a waiting message of each channel, or makes a new message."""
    wait = timedelta(seconds=spec.wait_s)
    together = ("raised", "worse", "cleared") if reason in ("raised", "worse", "cleared") else (reason,)
    for channel in _channels(channels, alarm, facts):
        # The lock keeps alarms out of a message that is being sent.
        open = Message.objects.select_for_update().filter(
            channel=channel, route=route, attempts=0, sent_at=None, given_up_at=None
        )
        message = open.filter(reason__in=together).order_by("created_at").first()
        if message is None:
            message = Message.objects.create(
                channel=channel, route=route, reason=reason, created_at=facts.now, due_at=facts.now + wait
            )
        message.alarms.add(alarm)


def test_message(channel: Channel) -> Message:
    """Puts a test message into the outbox. It says that nothing is wrong."""
    return Message.objects.create(channel=channel, reason="test")


def prune() -> None:
    """Deletes the oldest messages that were sent or given up. It keeps the newest MESSAGES_KEPT of them."""
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
            continue  # another version of Fogline wrote it; the page shows that
    return found
