"""Policies, and what they decided."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class Policy(models.Model):
    """When elements move by themselves. The name never changes, since handovers refer to it."""

    class Mode(models.TextChoices):
        ADVICE = "advice"
        AUTOMATIC = "automatic"

    name = models.CharField(max_length=40, unique=True)
    # a Rule of pipeline_runtime/placement/policy/rules.py: its kind and its figures
    rule = models.JSONField()
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
    """Where the user of an element is, as last reported. It stays until another place is reported."""

    pipeline = models.ForeignKey("pipelines.Pipeline", on_delete=models.CASCADE, related_name="+")
    element = models.CharField(max_length=60)
    site = models.CharField(max_length=40)
    since = models.DateTimeField()  # when that site was first reported, with no other one since
    told_at = models.DateTimeField()  # when it was last reported, to within some seconds
    told_by = models.CharField(max_length=150)
    audited_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipeline", "element"], name="one_place_per_element")]

    def __str__(self) -> str:
        return f"{self.element}: {self.site}"


class UserStay(models.Model):
    """Where the user of an element was in the last day. Policies are tried out on it."""

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
    """A changed verdict of a policy, about a node or one of its groups. It outlives all of them."""

    at = models.DateTimeField(default=timezone.now)
    policy = models.CharField(max_length=40)
    node = models.CharField(max_length=40, blank=True)  # empty when it is about a pipeline's copies at a site
    site = models.CharField(max_length=60, blank=True)  # empty when it is about a node
    # empty when it is about the node as a whole, and so are the next two
    pipeline = models.CharField(max_length=60, blank=True)
    element = models.CharField(max_length=60, blank=True)
    title = models.CharField(max_length=200, blank=True)  # the name that users see
    code = models.CharField(max_length=16)  # Code of pipeline_runtime/placement/policy/facts.py
    target = models.CharField(max_length=40, blank=True)
    why = models.TextField()
    handover = models.UUIDField(null=True, blank=True)  # the one that was ordered
    operation = models.UUIDField(null=True, blank=True)  # the one that was ordered

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["policy", "-id"], name="decisions_of_policy")]

    def __str__(self) -> str:
        return f"{self.policy}: {self.code} {self.node or self.site} {self.title}"
