"""Live migrations and restorations as persisted state machines, their queues, orders about dead letters."""

from __future__ import annotations

import uuid
from typing import cast

from django.conf import settings
from django.db import models

from pipeline_runtime.handover.phases import Phase
from pipeline_runtime.model.dead_letters import Chosen
from webapp.handovers.schemas import QueuedState


class Handover(models.Model):
    class Kind(models.TextChoices):
        MIGRATION = "migration"  # the origin cooperates
        RESTORATION = "restoration"  # the origin is gone

    class Outcome(models.TextChoices):
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    deployment = models.ForeignKey(
        "placements.Deployment", on_delete=models.CASCADE, related_name="handovers"
    )
    group = models.CharField(max_length=60)
    element = models.CharField(max_length=60)  # the one that the user chose
    kind = models.CharField(max_length=16, choices=Kind.choices)
    strategy = models.CharField(max_length=16)  # a Strategy
    origin = models.CharField(max_length=40)  # node names
    target = models.CharField(max_length=40)
    checkpoint_seq = models.BigIntegerField(null=True, blank=True)  # for a restoration; null means the newest
    phase = models.CharField(max_length=16, default=Phase.PENDING)
    reason = models.CharField(max_length=200, blank=True)  # why it was ordered automatically
    outcome = models.CharField(max_length=16, choices=Outcome.choices, null=True, blank=True)
    message = models.TextField(blank=True)
    code = models.CharField(max_length=40, blank=True)  # of a failure, one of error_codes.IN_ORDERS
    timeline = models.JSONField(default=list)  # [{phase, start_ms, end_ms, bytes, note, behind?}]
    # From the last output before to the first output after, by the broker's clock.
    gap_ms = models.BigIntegerField(null=True, blank=True)
    measured = models.JSONField(default=dict)  # the times of its Takeover, see pause.py
    written = models.JSONField(null=True, default=None)  # to the journal around it, see written.py
    begun = models.JSONField()  # what the target had when it was ordered, see forecast.py
    round_trips = models.PositiveIntegerField(null=True, blank=True)  # from RELEASE to the first commit
    bytes_copied = models.BigIntegerField(default=0)
    cancel_requested = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            # The database itself refuses a second handover of a group that is in one.
            models.UniqueConstraint(
                fields=["deployment", "group"],
                condition=models.Q(outcome__isnull=True),
                name="one_running_handover",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.element} from {self.origin} to {self.target}: {self.phase}"


class QueuedMove(models.Model):
    """A live migration in the queue of its deployment. Control orders it when the one before it is done.

    A deployment has one queue: its rows by id. The queue lasts until all of its moves have an outcome. The
    next order of moves then begins another queue.
    """

    class Outcome(models.TextChoices):
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        LEFT_OUT = "left-out"  # not ordered, since one before it was not done

    deployment = models.ForeignKey(
        "placements.Deployment", on_delete=models.CASCADE, related_name="queued_moves"
    )
    element = models.CharField(max_length=60)  # the one that the user chose; its group moves
    target = models.CharField(max_length=40)  # the name of a node
    # null until it is ordered
    handover = models.OneToOneField(Handover, on_delete=models.CASCADE, null=True, related_name="queued")
    outcome = models.CharField(max_length=9, choices=Outcome.choices, null=True)  # null until it has ended
    message = models.TextField(blank=True)  # why it still waits, or was not ordered
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.element} to {self.target}: {self.state}"

    @property
    def state(self) -> QueuedState:
        if self.outcome is not None:
            return cast(QueuedState, self.outcome)
        return "waits" if self.handover_id is None else "moving"


class LetterOrder(models.Model):
    """An order of a person about dead letters of an element. Control carries it out.

    Kafka has the truth about each letter: a mark in the letters' topic, with this order's id.
    """

    class Did(models.TextChoices):
        DROP = "drop"
        PUT_BACK = "put-back"
        REPLAY = "replay"

    class Status(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    deployment = models.ForeignKey(
        "placements.Deployment", on_delete=models.CASCADE, related_name="letter_orders"
    )
    element = models.CharField(max_length=60)
    did = models.CharField(max_length=8, choices=Did.choices)
    letters = models.PositiveIntegerField()  # how many it is about, when it was ordered
    reason = models.CharField(max_length=500, blank=True)  # their group's, if they are one
    text = models.CharField(max_length=1000, blank=True)  # only letters of the reason in which it stands
    # They lie from here to before there.
    first = models.BigIntegerField()
    until = models.BigIntegerField()
    offsets = models.JSONField(null=True)  # in rising order; null if it is about all of the reason
    rows = models.JSONField(null=True)  # {offset: [cells, at]} of mended rows, until it is done
    mended = models.BooleanField(default=False)
    # The order whose letters it puts back, of one that does so.
    of = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="put_back_by")
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    cancel_requested = models.BooleanField(default=False)
    message = models.TextField(blank=True)  # why it failed
    position = models.BigIntegerField(default=0)  # it is done with the letters before this offset
    taken = models.PositiveIntegerField(default=0)  # letters for which it was done
    before = models.PositiveIntegerField(default=0)  # letters for which something was done before
    stayed = models.JSONField(default=list)  # [offset, why] of rows that did not come back, the first ones
    stayed_count = models.PositiveIntegerField(default=0)
    # {topic: {partition: offset}}: the rows that `places` does not have yet lie behind these in the streams.
    behind = models.JSONField(null=True)
    # {topic: {partition: [[first, last], …]}} of its rows there; null if all readers get them
    places = models.JSONField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["deployment", "element", "-created_at"], name="newest_letter_orders")]

    def __str__(self) -> str:
        return f"{self.did} of {self.letters} letters of {self.element}: {self.status}"

    @property
    def chosen(self) -> Chosen:
        """Returns which letters it is about."""
        offsets = None if self.offsets is None else tuple(self.offsets)
        return Chosen(self.first, self.until, offsets, self.reason, self.text)
