"""Alarms and their histories, rules, routes and channels, and the positions up to which alert rows were
read."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.alarms.routing import Told as ToldFacts
from webapp.alarms.state import State


class Rule(models.Model):
    """A rule that raises alarms from what Fogline measures. `rule` is a Rule of webapp/alarms/rules.py."""

    name = models.CharField(max_length=60, unique=True)
    rule = models.JSONField()
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Alarm(models.Model):
    """One alarm, from when it was raised until it was cleared. It outlives what it is about."""

    class Source(models.TextChoices):
        ROWS = "rows"  # of an alert element
        RULE = "rule"
        CHANNEL = "channel"  # one that fails

    # webapp.alarms.taking.identity_of: alarms with the same are of the same thing, one after another
    identity = models.CharField(max_length=64, db_index=True)
    source = models.CharField(max_length=8, choices=Source.choices)
    rule = models.ForeignKey(Rule, on_delete=models.SET_NULL, null=True, related_name="alarms")
    channel = models.PositiveBigIntegerField(null=True)  # the id of the channel that fails
    pipeline = models.CharField(max_length=60, blank=True)
    element = models.CharField(max_length=60, blank=True)
    node = models.CharField(max_length=40, blank=True)  # where the element ran when it was raised
    site = models.CharField(max_length=40, blank=True)
    deployment = models.CharField(max_length=10, blank=True)  # of the rows
    key = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=200)  # of what it is about, as people read it
    row = models.JSONField(null=True)  # the row that raised it: {"stream", "partition", "offset"}
    # a State of webapp/alarms/state.py
    severity = models.CharField(max_length=8)
    message = models.CharField(max_length=500)
    values = models.JSONField(default=dict)
    count = models.PositiveBigIntegerField(default=1)
    raised_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    silenced_until = models.DateTimeField(null=True)
    silenced_by = models.CharField(max_length=150, blank=True)
    silenced_severity = models.CharField(max_length=8, blank=True)
    note = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["identity"], condition=models.Q(cleared_at=None), name="one_open_alarm"
            )
        ]
        indexes = [
            models.Index(fields=["cleared_at", "-id"], name="alarms_by_end"),
            models.Index(fields=["pipeline", "element", "cleared_at"], name="alarms_of_elements"),
        ]

    STATE = tuple(State.__dataclass_fields__)
    """the fields that are a State"""

    def __str__(self) -> str:
        return f"{self.severity} {self.title}: {self.message}"

    @property
    def state(self) -> State:
        return State(**{name: getattr(self, name) for name in self.STATE})

    @state.setter
    def state(self, state: State) -> None:
        for name in self.STATE:
            setattr(self, name, getattr(state, name))


class AlarmChange(models.Model):
    """A line of an alarm's history."""

    alarm = models.ForeignKey(Alarm, on_delete=models.CASCADE, related_name="changes")
    at = models.DateTimeField()
    kind = models.CharField(max_length=16)  # ChangeKind of webapp/alarms/state.py
    who = models.CharField(max_length=150, blank=True)  # empty when it changed by itself
    note = models.CharField(max_length=500, blank=True)
    until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.alarm_id} {self.kind}"


class AlertReading(models.Model):
    """How far the rows of an alert element were read. It is stored with the alarms that they changed."""

    deployment = models.ForeignKey("placements.Deployment", on_delete=models.CASCADE, related_name="+")
    stream = models.CharField(max_length=120)  # element.port
    positions = models.JSONField(default=dict)  # by partition: the next offset
    missed = models.BigIntegerField(default=0)  # offsets that Kafka had deleted before they were read

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["deployment", "stream"], name="one_reading_per_stream")
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id} {self.stream}"


# -- who is told -------------------------------------------------------------------------------------


class Channel(models.Model):
    """A way to people, or to a receiver of messages. `url` is one of apprise, sealed with `secret_key`."""

    name = models.CharField(max_length=60, unique=True)
    scheme = models.CharField(max_length=20)  # of SCHEMES of webapp/alarms/channels.py
    url = models.TextField()
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    worked_at = models.DateTimeField(null=True)  # when it took a message last
    failing_since = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)  # of the newest attempt, if it failed

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Route(models.Model):
    """Who is told of which alarms. `spec` is a RouteSpec of webapp/alarms/routing.py."""

    name = models.CharField(max_length=60, unique=True)
    spec = models.JSONField()
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Told(models.Model):
    """What a route has told about an alarm."""

    alarm = models.ForeignKey(Alarm, on_delete=models.CASCADE, related_name="told")
    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="+")
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    severity = models.CharField(max_length=10)
    escalated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["alarm", "route"], name="told_once_by_each_route")]

    def __str__(self) -> str:
        return f"{self.alarm_id} by {self.route_id}"

    @property
    def facts(self) -> ToldFacts:
        return ToldFacts(self.first_at, self.last_at, self.severity, self.escalated_at)


class Message(models.Model):
    """A message to a channel. It is stored in the transaction of the change that it tells about. Its text is
    made at the first attempt, and then stays the same."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)  # goes along with it
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="messages")
    route = models.ForeignKey(Route, on_delete=models.SET_NULL, null=True, related_name="+")
    reason = models.CharField(max_length=12)  # Reason of webapp/alarms/routing.py
    alarms = models.ManyToManyField(Alarm, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now)  # of the next attempt
    subject = models.CharField(max_length=200, blank=True)
    body = models.TextField(blank=True)
    data = models.JSONField(default=dict)  # for webhooks
    attempts = models.PositiveIntegerField(default=0)
    # Set before an attempt, and None after it. One that is set when control starts may have gone out.
    attempt_at = models.DateTimeField(null=True)
    # How often the receiver may have had it before it was sent once more.
    repeats = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["sent_at", "given_up_at", "due_at"], name="messages_to_send")]

    def __str__(self) -> str:
        return f"{self.reason} to {self.channel_id}: {self.subject}"
