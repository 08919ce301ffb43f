"""Connections: how to reach systems outside. What must stay secret is sealed."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Connection(models.Model):
    name = models.CharField(primary_key=True, max_length=60)  # documents name it, so it stays
    kind = models.CharField(max_length=60)  # operators.connections.ConnectionFields.kind
    fields = models.JSONField(default=dict)  # without the secret ones
    sealed = models.TextField(
        blank=True
    )  # the secret ones as JSON, sealed with the installation's secret_key
    version = models.BigIntegerField()  # ms of the newest change: it rises, also past a deletion
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
