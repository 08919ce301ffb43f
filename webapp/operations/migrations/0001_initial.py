import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The table is there: of the app `handovers`."""

    initial = True

    dependencies = [
        ("handovers", "0008_to_operations"),
        ("placements", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Operation",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("deploy", "Deploy"),
                                    ("undeploy", "Undeploy"),
                                    ("upgrade", "Upgrade"),
                                ],
                                max_length=16,
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("pending", "Pending"),
                                    ("running", "Running"),
                                    ("done", "Done"),
                                    ("failed", "Failed"),
                                ],
                                default="pending",
                                max_length=16,
                            ),
                        ),
                        ("steps", models.JSONField(default=list)),
                        ("restart", models.JSONField(default=list)),
                        ("message", models.TextField(blank=True)),
                        ("faults", models.JSONField(default=list)),
                        ("phase", models.CharField(default="PENDING", max_length=16)),
                        ("phase_since", models.DateTimeField(blank=True, null=True)),
                        ("deadline", models.DateTimeField(blank=True, null=True)),
                        ("waits_for", models.TextField(blank=True)),
                        ("orders", models.PositiveIntegerField(default=0)),
                        ("failing", models.JSONField(default=dict)),
                        ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                        ("ended_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                        (
                            "deployment",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="operations",
                                to="placements.deployment",
                            ),
                        ),
                        (
                            "created_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-created_at"],
                    },
                ),
            ]
        )
    ]
