"""A policy of sites decides about a pipeline's copies at a site, and orders upgrades."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("policies", "0003_user_place")]

    operations = [
        migrations.AddField(
            "decision", "site", models.CharField(blank=True, default="", max_length=60), False
        ),
        migrations.AddField("decision", "operation", models.UUIDField(blank=True, null=True)),
        migrations.AlterField("decision", "node", models.CharField(blank=True, max_length=40)),
    ]
