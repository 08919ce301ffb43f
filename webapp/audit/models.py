"""Records of what people did (audit) and of what happened (events)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class AuditRecord(models.Model):
    at = models.DateTimeField(default=timezone.now, db_index=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    username = models.CharField(max_length=150)  # stays when the account is deleted; "control" for the system
    action = models.CharField(max_length=60)  # such as pipeline.deploy
    target = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.username} {self.action} {self.target}"


class Event(models.Model):
    class Severity(models.TextChoices):
        INFO = "info"
        WARNING = "warning"
        ERROR = "error"

    at = models.DateTimeField(default=timezone.now, db_index=True)
    severity = models.CharField(max_length=8, choices=Severity.choices, default=Severity.INFO)
    kind = models.CharField(max_length=60)  # such as node.silent
    pipeline = models.CharField(max_length=60, null=True, blank=True)
    element = models.CharField(max_length=60, null=True, blank=True)
    node = models.CharField(max_length=40, null=True, blank=True)
    message = models.TextField()
    detail = models.JSONField(default=dict)
    # What it follows from, such as a node's silence: people are shown both as one.
    cause = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.severity} {self.kind}: {self.message}"
