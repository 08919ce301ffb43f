import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import webapp.pipelines.models


class Migration(migrations.Migration):
    """The tables are there: of the app `pipelines`."""

    initial = True

    dependencies = [
        ("nodes", "0005_no_credential"),
        ("pipelines", "0008_to_placements"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Deployment",
                    fields=[
                        (
                            "id",
                            models.CharField(
                                default=webapp.pipelines.models.random_id,
                                editable=False,
                                max_length=10,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("placement", models.JSONField(blank=True, default=dict)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("deploying", "Deploying"),
                                    ("running", "Running"),
                                    ("undeploying", "Undeploying"),
                                    ("undeployed", "Undeployed"),
                                    ("failed", "Failed"),
                                ],
                                default="deploying",
                                max_length=16,
                            ),
                        ),
                        ("message", models.TextField(blank=True)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("ended_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "created_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "pipeline",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deployments",
                                to="pipelines.pipeline",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deployments",
                                to="pipelines.pipelineversion",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-created_at"],
                    },
                ),
                migrations.CreateModel(
                    name="ExtraReplica",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("group", models.CharField(max_length=60)),
                        ("role", models.CharField(max_length=16)),
                        ("source", models.JSONField(blank=True, null=True)),
                        ("generation", models.PositiveIntegerField(default=1)),
                        ("succeed", models.CharField(blank=True, max_length=64)),
                        ("handover", models.CharField(blank=True, max_length=64)),
                        ("wanted", models.BooleanField(default=False)),
                        ("until", models.DateTimeField(blank=True, null=True)),
                        (
                            "deployment",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="extra_replicas",
                                to="placements.deployment",
                            ),
                        ),
                        (
                            "node",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="extra_replicas",
                                to="nodes.node",
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="GroupPlacement",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("group", models.CharField(max_length=60)),
                        ("spec", models.JSONField()),
                        ("role", models.CharField(default="owner", max_length=16)),
                        ("order_id", models.CharField(blank=True, max_length=64)),
                        ("order_over", models.BigIntegerField(default=0)),
                        ("order_rewind", models.BigIntegerField(blank=True, null=True)),
                        ("order_anew", models.BooleanField(default=False)),
                        ("order_anew_but_for", models.JSONField(default=list)),
                        ("release", models.CharField(blank=True, max_length=64)),
                        ("source", models.JSONField(blank=True, null=True)),
                        ("paused_at", models.DateTimeField(blank=True, null=True)),
                        ("retire", models.BooleanField(default=False)),
                        ("generation", models.PositiveIntegerField(default=1)),
                        ("java_ends", models.JSONField(default=list)),
                        ("vouched", models.CharField(blank=True, max_length=64)),
                        ("anew_from", models.BigIntegerField(default=0)),
                        (
                            "deployment",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="placements",
                                to="placements.deployment",
                            ),
                        ),
                        (
                            "node",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="placements",
                                to="nodes.node",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["deployment", "group"],
                    },
                ),
                migrations.CreateModel(
                    name="Replica",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("group", models.CharField(max_length=60)),
                        ("generation", models.PositiveIntegerField(default=1)),
                        ("status", models.JSONField(default=dict)),
                        ("rates", models.JSONField(default=dict)),
                        ("role", models.CharField(max_length=16)),
                        ("epoch", models.BigIntegerField(default=0)),
                        ("seq", models.BigIntegerField(default=0)),
                        ("at", models.DateTimeField()),
                        (
                            "deployment",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="replicas",
                                to="placements.deployment",
                            ),
                        ),
                        (
                            "node",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="replicas",
                                to="nodes.node",
                            ),
                        ),
                    ],
                ),
                migrations.AddIndex(
                    model_name="deployment",
                    index=models.Index(fields=["pipeline", "-created_at"], name="newest_deployments"),
                ),
                migrations.AddConstraint(
                    model_name="deployment",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("status__in", ["deploying", "running", "undeploying"])),
                        fields=("pipeline",),
                        name="one_active_deployment",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="extrareplica",
                    constraint=models.UniqueConstraint(
                        fields=("deployment", "group", "node"), name="one_extra_per_node"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="groupplacement",
                    constraint=models.UniqueConstraint(
                        fields=("deployment", "group"), name="one_placement_per_group"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="replica",
                    constraint=models.UniqueConstraint(
                        fields=("deployment", "group", "node"), name="one_replica_per_node"
                    ),
                ),
            ]
        )
    ]
