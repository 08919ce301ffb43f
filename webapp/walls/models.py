"""Walls, and the links by which they are shown to people without an account."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

LINK_ENDS_AFTER = timedelta(days=30)
"""How long a link lasts without use."""


class Wall(models.Model):
    id = models.CharField(primary_key=True, max_length=60)  # made of the first title, and stays
    title = models.CharField(max_length=80)
    tiles = models.JSONField(default=list)  # webapp.walls.tiles
    revision = models.PositiveIntegerField(default=1)  # the ETag
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["title"]

    def __str__(self) -> str:
        return self.title


class WallLink(models.Model):
    """`hash` is the SHA-256 of the link's secret, which itself is shown once and never stored."""

    wall = models.ForeignKey(Wall, on_delete=models.CASCADE, related_name="links")
    name = models.CharField(max_length=80)
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    last_used_at = models.DateTimeField(null=True, blank=True)  # to within an hour

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return f"{self.wall}: {self.name}"

    @property
    def ends_at(self) -> datetime:
        return (self.last_used_at or self.created_at) + LINK_ENDS_AFTER
