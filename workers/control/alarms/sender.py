"""Sends what is in the outbox: each message at least once, one at a time for each channel.

    waits --> attempt --> sent
                '--> waits for longer and longer --> given up after a day

An attempt is in the database before it is made. When control dies during one, or the receiver does not say
whether it has the message, the message is sent once more with the same id, and that is counted.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.db import close_old_connections, transaction
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from pipeline_runtime.sealing import SealBroken, opened
from webapp.alarms.channels import NotSent, send
from webapp.alarms.composing import compose
from webapp.alarms.models import Alarm, Channel, Message, Told
from webapp.alarms.outbox import CHANNEL_FAILS_AFTER, plan, prune
from webapp.alarms.routing import GIVEN_UP_AFTER, pause_s
from webapp.alarms.sealed import PURPOSE
from webapp.alarms.state import Clear, Raise
from webapp.alarms.taking import About, Step, take
from webapp.audit.announcements import announce
from workers.control.context import ControlContext
from workers.control.periodic import Periodic

EACH_S = 0.5
PLAN_S = 2.0
PRUNE_S = 600.0
AT_ONCE_MAX = 8
"""How many channels are sent to at the same time."""
log = logging.getLogger(__name__)


class AlarmSender(Periodic):
    """If it fails, messages are sent later."""

    name, failure = "alarm-sender", "messages about alarms were not looked at this time"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context, EACH_S)
        # By channel. Daemons: control ends at once, and what one of them was sending is sent again.
        self._running: dict[int, threading.Thread] = {}
        self._plan_at_s = 0.0
        self._prune_at_s = monotonic() + PRUNE_S

    def look(self) -> None:
        self._running = {channel: each for channel, each in self._running.items() if each.is_alive()}
        for channel, message in due_messages().items():
            if channel not in self._running and len(self._running) < AT_ONCE_MAX:
                thread = threading.Thread(target=self._deliver, args=(message,), daemon=True)
                self._running[channel] = thread
                thread.start()
        # What fails here is told, and keeps nothing from being sent.
        if monotonic() >= self._plan_at_s:
            self._plan_at_s = monotonic() + PLAN_S
            plan()
        if monotonic() >= self._prune_at_s:
            self._prune_at_s = monotonic() + PRUNE_S
            prune()

    def _deliver(self, id: UUID) -> None:
        try:
            close_old_connections()
            deliver(id, self._context.settings.secret_key, self._context.settings.people_url)
        except Exception as error:
            log.warning("a message about alarms was not sent, it is tried again: %s", error, exc_info=True)
        finally:
            close_old_connections()


def due_messages() -> dict[int, UUID]:
    """Returns channel -> the message that is to be sent next."""
    due = Message.objects.filter(
        channel=OuterRef("pk"), sent_at=None, given_up_at=None, due_at__lte=timezone.now()
    )
    first = Subquery(due.order_by("due_at").values("id")[:1])
    channels = Channel.objects.filter(enabled=True).annotate(next=first).exclude(next=None)
    return dict(channels.values_list("pk", "next"))


def deliver(id: UUID, secret_key: str, page: str) -> None:
    """Makes one attempt to send a message, and stores what came of it."""
    message = _begun(id, page)
    if message is None:
        return
    try:
        url = opened(message.channel.url, secret_key, PURPOSE)
        note = send(url, str(message.pk), message.subject, message.body, message.data)
    except SealBroken as error:
        _failed(message, f"{error} Make the channel again.", maybe=False)
    except NotSent as error:
        _failed(message, str(error), maybe=error.maybe)
    else:
        _sent(message, note)


@transaction.atomic
def _begun(id: UUID, page: str) -> Message | None:
    """Stores that an attempt begins. Returns None if there is nothing to send any more."""
    rows = Message.objects.select_for_update(of=("self",)).select_related("channel")
    message = rows.filter(pk=id).first()
    if message is None or message.sent_at is not None or message.given_up_at is not None:
        return None
    now = timezone.now()
    if message.attempt_at is not None:
        message.repeats += 1  # nobody knows what came of that one
    if message.attempts == 0 and (why := _not_needed(message, page, now)):
        message.given_up_at, message.error = now, why
        message.save()
        return None
    message.attempts += 1
    message.attempt_at = now
    message.save()
    return message


def _not_needed(message: Message, page: str, now: datetime) -> str:
    """Makes the text of a message. Returns why nobody needs it any more, if so."""
    if now - message.created_at > GIVEN_UP_AFTER:
        return "It was no longer needed: its channel was switched off for too long."
    if compose(message, page, now):
        return ""
    # When the silence ends, people are told as if for the first time.
    silenced = message.alarms.filter(silenced_until__gt=now)
    Told.objects.filter(route=message.route, alarm__in=silenced).delete()
    return "It was no longer needed: somebody knows of the alarms."


@transaction.atomic
def _sent(message: Message, note: str) -> None:
    now = timezone.now()
    Message.objects.filter(pk=message.pk).update(sent_at=now, attempt_at=None, error=note)
    channel = Channel.objects.select_for_update(no_key=True).filter(pk=message.channel_id).first()
    if channel is None:
        return
    channel.worked_at, channel.failing_since, channel.error = now, None, ""
    channel.save(update_fields=["worked_at", "failing_since", "error"])
    take([Step(_about(channel), Clear(now, "It took a message."))])
    announce()


@transaction.atomic
def _failed(message: Message, why: str, *, maybe: bool) -> None:
    now = timezone.now()
    message.error = why
    message.due_at = now + timedelta(seconds=pause_s(message.attempts))
    if not maybe:
        message.attempt_at = None
    if now - message.created_at > GIVEN_UP_AFTER:
        message.given_up_at = now
    message.save(update_fields=["error", "due_at", "attempt_at", "given_up_at"])
    channel = Channel.objects.select_for_update(no_key=True).filter(pk=message.channel_id).first()
    if channel is None:
        return
    channel.failing_since, channel.error = channel.failing_since or now, why
    channel.save(update_fields=["failing_since", "error"])
    if now - channel.failing_since >= CHANNEL_FAILS_AFTER:
        text = (
            f"The channel {channel.name} has taken no message since {channel.failing_since:%H:%M} UTC: {why}"
        )
        take([Step(_about(channel), Raise(now, "critical", text[:500]))])
    announce()


def _about(channel: Channel) -> About:
    return About(Alarm.Source.CHANNEL, f"Channel {channel.name}", channel=channel.pk)
