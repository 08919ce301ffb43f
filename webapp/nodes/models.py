"""Registered machines, as control last heard of them, and the tokens that admit new ones."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from pipeline_runtime.placement.constraints import Closed


class Node(models.Model):
    name = models.CharField(max_length=40, unique=True)
    url = models.CharField(max_length=200, blank=True)  # of its chunk service
    version = models.CharField(max_length=40, blank=True)
    cores = models.PositiveIntegerField(default=0)
    # a node without a site is a site of its own
    site = models.CharField(max_length=40, blank=True, default="")
    cordoned = models.BooleanField(default=False)  # takes nothing new; what runs there goes on
    # Since when everything that it runs is to be moved away. null when it is not drained, or is empty.
    # Implies cordoned.
    draining_since = models.DateTimeField(null=True, blank=True)
    drain_blocked = models.TextField(blank=True)  # which groups cannot leave now, and why
    # Since when it is leaving, by control's clock: it was told to stop, and hands over what it owns. null
    # when it is not leaving. Until it has ended it takes nothing new, as if it were cordoned. After a new
    # start it does again.
    leaving_since = models.DateTimeField(null=True, blank=True)
    leaving_until = models.DateTimeField(null=True, blank=True)  # by when it ends, by the node's clock
    leaving_stuck = models.BooleanField(default=False)  # no group that is left there can be moved
    # A policy wants it empty until then, and it takes nothing new. null when none does. Control writes it.
    maintenance_until = models.DateTimeField(null=True, blank=True)
    enrolled_at = models.DateTimeField(auto_now_add=True)
    # The newest report that was taken in. An older one of the same run is ignored.
    run_id = models.CharField(max_length=64, blank=True)
    report_number = models.BigIntegerField(default=0)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    up = models.BooleanField(default=False)  # the detector's verdict, not a guess from last_seen_at
    # When it was found silent. null when it is heard, or said goodbye.
    silent_at = models.DateTimeField(null=True, blank=True)
    ready = models.BooleanField(default=False)  # its Spark session is up
    load = models.JSONField(default=dict, blank=True)  # NodeLoad
    # What its newest report says is wrong with it: [{"message", "since"}]. Removed when a report no longer
    # says so.
    alerts = models.JSONField(default=list, blank=True)
    # A small request to the Kafka broker and its answer, smoothed, by the node's clock. null until it is
    # measured.
    broker_rtt_ms = models.FloatField(null=True, blank=True)
    broker_measured_at = models.DateTimeField(null=True, blank=True)
    revision_wanted = models.BigIntegerField(default=0)  # of NodeDesired; rises with each change
    revision_seen = models.BigIntegerField(default=0)  # the one that the node works on

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def closed(self) -> Closed | None:
        """Returns why the node takes nothing new, or None if there is no reason."""
        if self.cordoned:
            return "cordoned"
        if self.leaving_since is not None:
            return "leaving"
        return "in maintenance" if self.in_maintenance else None

    @property
    def takes_new(self) -> bool:
        """Returns whether the node may take new groups. It may be down all the same."""
        return self.closed is None

    @property
    def in_maintenance(self) -> bool:
        """Returns whether a maintenance lasts now. The clock decides it, so a maintenance also ends while
        control is away."""
        return self.maintenance_until is not None and self.maintenance_until > timezone.now()

    @property
    def emptied_since(self) -> datetime | None:
        """Returns since when control moves the node's groups away because the node is drained or leaving, or
        None if it is neither."""
        return self.draining_since or self.leaving_since

    @property
    def place(self) -> str:
        """Returns the site as the map shows it. A node without a site is a site of its own."""
        return self.site or self.name


class Link(models.Model):
    """What the probes of one node say about the line to another. Control writes it from the node's
    reports."""

    origin = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="links")
    target = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="+")
    # The values are smoothed. They are kept while the target does not answer.
    rtt_ms = models.FloatField(null=True, blank=True)
    bytes_per_s = models.FloatField(null=True, blank=True)  # what `target` sends to `origin`
    # By the node's clock: when the newest probe was answered, or when the first was sent if none was
    # answered; and when the rate was measured.
    measured_at = models.DateTimeField()
    rate_measured_at = models.DateTimeField(null=True, blank=True)
    unreachable_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["origin", "target"], name="one_link_each_way")]

    def __str__(self) -> str:
        return f"{self.origin_id} to {self.target_id}"


class GivenCell(models.Model):
    """A cell of a matrix that a person gave. It counts before a measured value."""

    origin = models.CharField(max_length=40)  # a site
    target = models.CharField(max_length=40)

    class Meta:
        abstract = True
        ordering = ["pk"]  # as in the file
        constraints = [models.UniqueConstraint(fields=["origin", "target"], name="one_%(class)s_each_way")]


class GivenLatency(GivenCell):
    ms = models.FloatField()

    def __str__(self) -> str:
        return f"{self.origin} to {self.target}: {self.ms:g} ms"


class GivenRate(GivenCell):
    mbit_s = models.FloatField()

    def __str__(self) -> str:
        return f"{self.origin} to {self.target}: {self.mbit_s:g} Mbit/s"


class EnrolmentToken(models.Model):
    """A token that admits one machine, once, under one name. Only its SHA-256 is stored."""

    node_name = models.CharField(max_length=40)
    hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"for {self.node_name} until {self.expires_at:%Y-%m-%d %H:%M}"
