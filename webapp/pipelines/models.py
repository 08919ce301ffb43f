"""Pipelines, their versions, and uploaded files."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.pipelines.titles import title_of

BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def random_id() -> str:
    """Returns 10 lower-case base32 characters (50 bits): a deployment's D, or a data file's id."""
    return "".join(secrets.choice(BASE32) for _ in range(10))


class Pipeline(models.Model):
    name = models.CharField(max_length=60, unique=True)
    draft = models.JSONField(default=dict)  # the only document that changes; it may be invalid
    draft_revision = models.PositiveIntegerField(default=1)  # the ETag
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        """Returns what people call it: the title in its draft, or its name."""
        return title_of(self.draft) or self.name


class PipelineVersion(models.Model):
    """An immutable snapshot of a pipeline's document."""

    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    uploads = models.JSONField(default=list)  # ids of the data files that the document names
    note = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["pipeline", "number"], name="one_number_per_version")]

    def __str__(self) -> str:
        return f"{self.pipeline.name} version {self.number}"


class PinnedSample(models.Model):
    """Rows that are kept with a draft to preview an element on, and what it is expected to make of them."""

    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="samples")
    element = models.CharField(max_length=60)
    inputs = models.JSONField()  # by port: rows, each as model.preview.SampleRow
    expected = models.JSONField(null=True)  # Expected, or null if nothing is expected yet
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["element"]
        constraints = [models.UniqueConstraint(fields=["pipeline", "element"], name="one_sample_per_element")]

    def __str__(self) -> str:
        return f"{self.pipeline.name}/{self.element}"


class SavedTemplate(models.Model):
    """A template that somebody has made of a pipeline. Its picture is drawn from its document."""

    name = models.CharField(max_length=40, unique=True)  # made of its title; no shipped template has it
    title = models.CharField(max_length=60)
    description = models.CharField(max_length=500)  # on its card
    text = models.TextField(blank=True)  # Markdown
    words = models.JSONField(default=dict)  # element -> what it does, in Markdown
    replace = models.JSONField(default=list)  # the elements that its users set for themselves
    document = models.JSONField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["title"]

    def __str__(self) -> str:
        return self.title


class DataFile(models.Model):
    """An uploaded file with one reading. Several may share an original, each read in another way.

    The original lies in the central store under /files/{sha256}, and so does its table, once it is imported,
    as Parquet under /files/{table_sha256}. What was imported never changes.
    """

    class State(models.TextChoices):
        LOOKING = "looking"  # control looks how it can be read
        ASKS = "asks"  # a person has to answer its questions, or to confirm how it is read
        IMPORTING = "importing"
        IMPORTED = "imported"
        FAILED = "failed"
        CANCELLED = "cancelled"
        MODEL = "model"  # nothing is imported of it

    id = models.CharField(primary_key=True, max_length=10, default=random_id, editable=False)
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()  # bytes
    state = models.CharField(max_length=16, choices=State.choices, default=State.LOOKING)
    # Changes with each order. What control has begun for an earlier order does not count.
    order = models.PositiveIntegerField(default=1)
    confirm = models.BooleanField(default=False)  # a person looks at its reading before it is imported
    description = models.BinaryField(default=b"")  # of a model: what it takes and gives
    sample = models.JSONField(null=True)  # Head: what a preview is made of
    detection = models.JSONField(null=True)  # Detection
    reading = models.JSONField(null=True)  # Reading: as it is imported
    settled = models.JSONField(default=list)  # ids of the questions that a person has answered
    bytes_done = models.BigIntegerField(default=0)
    bytes_total = models.BigIntegerField(default=0)
    rows_done = models.BigIntegerField(default=0)
    report = models.JSONField(null=True)  # Report
    error = models.JSONField(null=True)  # FileTrouble
    facts = models.JSONField(null=True)  # what sources know of its table
    table_sha256 = models.CharField(max_length=64, blank=True)
    table_size = models.BigIntegerField(default=0)  # bytes
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def reference(self) -> str:
        return f"upload:{self.id}"
