from django.db import migrations, models


class Migration(migrations.Migration):
    """Labels were read as a site, and never written."""

    dependencies = [("nodes", "0005_no_credential")]

    operations = [
        migrations.RemoveField("node", "labels"),
        migrations.AddField("node", "site", models.CharField(blank=True, default="", max_length=40)),
    ]
