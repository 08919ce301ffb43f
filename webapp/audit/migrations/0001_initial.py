import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The tables are there: of the app `monitoring`."""

    initial = True

    dependencies = [
        ("monitoring", "0002_to_audit"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Event",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                        (
                            "severity",
                            models.CharField(
                                choices=[("info", "Info"), ("warning", "Warning"), ("error", "Error")],
                                default="info",
                                max_length=8,
                            ),
                        ),
                        ("kind", models.CharField(max_length=60)),
                        ("pipeline", models.CharField(blank=True, max_length=60, null=True)),
                        ("element", models.CharField(blank=True, max_length=60, null=True)),
                        ("node", models.CharField(blank=True, max_length=40, null=True)),
                        ("message", models.TextField()),
                        ("detail", models.JSONField(default=dict)),
                    ],
                    options={
                        "ordering": ["-at", "-id"],
                    },
                ),
                migrations.CreateModel(
                    name="AuditRecord",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                        ("username", models.CharField(max_length=150)),
                        ("action", models.CharField(max_length=60)),
                        ("target", models.CharField(max_length=200)),
                        ("detail", models.JSONField(default=dict)),
                        (
                            "user",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-at", "-id"],
                    },
                ),
            ]
        )
    ]
