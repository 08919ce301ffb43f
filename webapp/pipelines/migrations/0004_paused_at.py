from django.db import migrations, models
from django.db.models.functions import Now


def keep_pauses(apps, schema_editor):
    """Since when is not known: from now on."""
    apps.get_model("pipelines", "GroupPlacement").objects.filter(paused=True).update(paused_at=Now())


class Migration(migrations.Migration):
    dependencies = [("pipelines", "0003_newest_deployments")]

    operations = [
        migrations.AddField("groupplacement", "paused_at", models.DateTimeField(blank=True, null=True)),
        migrations.RunPython(keep_pauses, migrations.RunPython.noop),
        migrations.RemoveField("groupplacement", "paused"),
    ]
