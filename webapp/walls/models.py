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


class KeptSeries(models.Model):
    """A series of which a history is kept, since a chart shows more of it than a topic can be asked for."""

    id = models.CharField(primary_key=True, max_length=64)  # webapp.walls.kept.series_id
    topic = models.CharField(max_length=200)
    positions = models.JSONField(default=dict)  # by partition: where the history ends
    newest_ms = models.BigIntegerField(null=True)  # the greatest time of its rows
    left_out = models.BigIntegerField(default=0)  # rows that were too many to read
    unused_since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.id


class KeptBlock(models.Model):
    """300 steps of a history: webapp.walls.history."""

    series = models.ForeignKey(KeptSeries, on_delete=models.CASCADE, related_name="blocks")
    part = models.CharField(max_length=200, blank=True)
    step_ms = models.IntegerField()
    start_ms = models.BigIntegerField()
    cells = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["series", "part", "step_ms", "start_ms"], name="one_block_per_place"
            )
        ]

    def __str__(self) -> str:
        return f"{self.series_id} {self.part} {self.step_ms} {self.start_ms}"
