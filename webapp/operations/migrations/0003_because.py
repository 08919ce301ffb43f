"""Upgrades that nobody has ordered: a policy of sites did."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0002_change_of_shape")]

    operations = [
        migrations.AddField(
            "operation", "reason", models.CharField(blank=True, default="", max_length=60), False
        ),
        migrations.AddField(
            "operation", "site", models.CharField(blank=True, default="", max_length=60), False
        ),
    ]
