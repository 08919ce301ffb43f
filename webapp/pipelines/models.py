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
    draft = models.JSONField(default=dict)  # the only document that users change; it may be invalid
    draft_revision = models.PositiveIntegerField(default=1)  # the ETag of the draft
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
        """Returns the name for people: the title in the draft, or else the pipeline's name."""
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
    """Rows for the preview of an element, stored with the draft, and the rows that the element is expected to
    make."""

    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="samples")
    element = models.CharField(max_length=60)
    inputs = models.JSONField()  # by port: rows, each as model.preview.SampleRow
    expected = models.JSONField(null=True)  # Expected, or null if no rows are expected yet
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
    """A template that a user has made of a pipeline. Its picture is drawn from its document."""

    # Made from the title; no shipped template has this name.
    name = models.CharField(max_length=40, unique=True)
    title = models.CharField(max_length=60)
    description = models.CharField(max_length=500)  # the text on the template's card
    text = models.TextField(blank=True)  # Markdown
    words = models.JSONField(default=dict)  # element -> a text about the element, in Markdown
    replace = models.JSONField(default=list)  # the elements that users of the template set for themselves
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
    """An uploaded file with one way to read it. Several data files may share an original.

    The original is in the central store under /files/{sha256}. After the import, the table is there as well,
    as Parquet under /files/{table_sha256}. An imported table never changes.
    """

    class State(models.TextChoices):
        LOOKING = "looking"  # control finds out how to read the file
        ASKS = "asks"  # a person has to answer questions, or to confirm how the file is read
        IMPORTING = "importing"
        IMPORTED = "imported"
        FAILED = "failed"
        CANCELLED = "cancelled"
        MODEL = "model"  # a model, which needs no import

    id = models.CharField(primary_key=True, max_length=10, default=random_id, editable=False)
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()  # bytes
    state = models.CharField(max_length=16, choices=State.choices, default=State.LOOKING)
    # It changes with each order. A report of control about an earlier order is ignored.
    order = models.PositiveIntegerField(default=1)
    # Whether a person has to confirm how the file is read before the import.
    confirm = models.BooleanField(default=False)
    description = models.BinaryField(default=b"")  # for a model: its inputs and outputs
    sample = models.JSONField(null=True)  # Head: the part of the file that a preview needs
    detection = models.JSONField(null=True)  # Detection
    reading = models.JSONField(null=True)  # Reading: how the file is imported
    settled = models.JSONField(default=list)  # ids of the questions that a person has answered
    bytes_done = models.BigIntegerField(default=0)
    bytes_total = models.BigIntegerField(default=0)
    rows_done = models.BigIntegerField(default=0)
    report = models.JSONField(null=True)  # Report
    error = models.JSONField(null=True)  # FileTrouble
    facts = models.JSONField(null=True)  # the facts about the table that sources need
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
