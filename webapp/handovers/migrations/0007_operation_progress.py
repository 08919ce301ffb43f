from django.db import migrations, models


class Migration(migrations.Migration):
    """Operations that run meanwhile begin with PENDING again: all that they have done can be done twice."""

    dependencies = [("handovers", "0006_restart")]

    operations = [
        migrations.AddField("operation", "phase", models.CharField(default="PENDING", max_length=16)),
        migrations.AddField("operation", "phase_since", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("operation", "deadline", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("operation", "waits_for", models.TextField(blank=True)),
        migrations.AddField("operation", "orders", models.PositiveIntegerField(default=0)),
        migrations.AddField("operation", "failing", models.JSONField(default=dict)),
    ]
