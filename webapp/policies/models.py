"""Policies, and what they decided."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class Policy(models.Model):
    """When elements move by themselves. The name is never changed: handovers are told by it."""

    class Mode(models.TextChoices):
        ADVICE = "advice"
        AUTOMATIC = "automatic"

    name = models.CharField(max_length=40, unique=True)
    rule = models.JSONField()  # Rule of pipeline_runtime/placement/policy/rules.py: its kind, and its figures
    mode = models.CharField(max_length=16, choices=Mode.choices, default=Mode.ADVICE)
    moves_per_hour = models.PositiveIntegerField(default=6)
    enabled = models.BooleanField(default=True)
    # What it says now, as control found last: [Standing of webapp/policies/schemas.py].
    standing = models.JSONField(default=list, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class UserPlace(models.Model):
    """Where the user of an element is, as was told last. It stays until another place is told."""

    pipeline = models.ForeignKey("pipelines.Pipeline", on_delete=models.CASCADE, related_name="+")
    element = models.CharField(max_length=60)
    site = models.CharField(max_length=40)
    since = models.DateTimeField()  # when that site was told first, without another one since
    told_at = models.DateTimeField()  # when it was told last, but for some seconds
    told_by = models.CharField(max_length=150)
    audited_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipeline", "element"], name="one_place_per_element")]

    def __str__(self) -> str:
        return f"{self.element}: {self.site}"


class UserStay(models.Model):
    """Where the user of an element was before, in the last day: policies are tried on it."""

    pipeline = models.ForeignKey("pipelines.Pipeline", on_delete=models.CASCADE, related_name="+")
    element = models.CharField(max_length=60)
    site = models.CharField(max_length=40)
    since = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        ordering = ["since"]
        indexes = [models.Index(fields=["pipeline", "element", "until"], name="stays_of_users")]

    def __str__(self) -> str:
        return f"{self.element}: {self.site}"


class Decision(models.Model):
    """Another verdict of a policy than before, about a node or one of its groups. It outlives all of them."""

    at = models.DateTimeField(default=timezone.now)
    policy = models.CharField(max_length=40)
    node = models.CharField(max_length=40, blank=True)  # empty: of a pipeline's copies at a site
    site = models.CharField(max_length=60, blank=True)  # empty: of a node
    pipeline = models.CharField(max_length=60, blank=True)  # empty: of the node as a whole, as the next two
    element = models.CharField(max_length=60, blank=True)
    title = models.CharField(max_length=200, blank=True)  # what people call it
    code = models.CharField(max_length=16)  # Code of pipeline_runtime/placement/policy/facts.py
    target = models.CharField(max_length=40, blank=True)
    why = models.TextField()
    handover = models.UUIDField(null=True, blank=True)  # that was ordered
    operation = models.UUIDField(null=True, blank=True)  # likewise

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["policy", "-id"], name="decisions_of_policy")]

    def __str__(self) -> str:
        return f"{self.policy}: {self.code} {self.node or self.site} {self.title}"
