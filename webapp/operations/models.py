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

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    deployment = models.ForeignKey(
        "placements.Deployment", on_delete=models.CASCADE, related_name="operations"
    )
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    steps = models.JSONField(default=list)  # [{name, state, at}]; of an upgrade groups, with {change, title}
    # What an upgrade puts another version in place of.
    replaces = models.ForeignKey(
        "pipelines.PipelineVersion", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    obsolete = models.JSONField(default=list)  # topics that nobody needs when an upgrade has been carried out
    # Elements that may begin without their state, as the user agreed.
    restart = models.JSONField(default=list)
    message = models.TextField(blank=True)
    faults = models.JSONField(default=list)  # [{element, path, message, code}]
    # What the control side has come to, see workers/control/operations/steps.py. One that is unfinished and
    # has a message gives up, and clears away.
    phase = models.CharField(max_length=16, default="PENDING")
    phase_since = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField(null=True, blank=True)  # of the phase; null: it waits for nobody
    waits_for = models.TextField(blank=True)  # in words; empty: for nothing
    orders = models.PositiveIntegerField(default=0)  # to own, that an upgrade has given to its present group
    failing = models.JSONField(default=dict)  # {group: since when it shows an error, ms}
    reason = models.CharField(max_length=60, blank=True)  # who ordered it if nobody did: "policy NAME"
    site = models.CharField(
        max_length=60, blank=True
    )  # whose copies it changes, of a policy or by its advice
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.deployment_id}: {self.status}"
