"""Deployments, upgrades and undeployments as persisted state machines."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Operation(models.Model):
    class Kind(models.TextChoices):
        DEPLOY = "deploy"
        UNDEPLOY = "undeploy"
        UPGRADE = "upgrade"  # another version takes over, group by group

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    UNFINISHED = (Status.PENDING, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    deployment = models.ForeignKey(
        "placements.Deployment", on_delete=models.CASCADE, related_name="operations"
    )
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    steps = models.JSONField(default=list)  # [{name, state, at}]; of an upgrade groups, with {change, title}
    # What an upgrade replaces by another version.
    replaces = models.ForeignKey(
        "pipelines.PipelineVersion", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    obsolete = models.JSONField(default=list)  # topics that nobody needs after an upgrade
    # Elements that may begin without their state, as the user agreed.
    restart = models.JSONField(default=list)
    message = models.TextField(blank=True)
    code = models.CharField(max_length=40, blank=True)  # of a failure, one of error_codes.IN_ORDERS
    faults = models.JSONField(default=list)  # [{element, path, message, code}]
    # The phase that control has reached, see workers/control/operations/steps.py. An unfinished operation
    # with a message gives up, and clears away.
    phase = models.CharField(max_length=16, default="PENDING")
    phase_since = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField(null=True, blank=True)  # of the phase; null when it waits for nothing
    waits_for = models.TextField(blank=True)  # in words; empty when it waits for nothing
    # the orders to own that an upgrade gave to its present group
    orders = models.PositiveIntegerField(default=0)
    failing = models.JSONField(default=dict)  # {group: since when it shows an error, ms}
    reason = models.CharField(max_length=60, blank=True)  # who ordered it if no person did: "policy NAME"
    site = models.CharField(
        max_length=60, blank=True
    )  # the site whose copies it changes, by a policy or on its advice
    undelivered = models.JSONField(
        default=list
    )  # of groups that end: what waits at their deliverers, as control counted it last (Undelivered)
    hurry = models.BooleanField(default=False)  # it waits for no deliverer any more
    again = models.BooleanField(default=False)  # after this undeployment the same version is deployed again
    # the deployment that was ordered when this undeployment had ended
    next = models.OneToOneField("self", on_delete=models.SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.deployment_id}: {self.status}"


class CarriedState(models.Model):
    """The state that came with a pipeline from another Fogline, until a deployment has taken it up."""

    pipeline = models.OneToOneField("pipelines.Pipeline", on_delete=models.CASCADE, related_name="carried")
    sha256 = models.CharField(max_length=64)  # of the text, which lies among the central store's files
    groups = models.JSONField()  # of its header: where each group stands
    document = models.JSONField()  # the draft as it came
    deployment = models.CharField(max_length=10, blank=True)  # the one that takes it up
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"state of {self.pipeline.name}"
