import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_initial"), ("pipelines", "0009_in_placements")]

    operations = [
        migrations.AddField("operation", "obsolete", models.JSONField(default=list)),
        migrations.AddField(
            "operation",
            "replaces",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="pipelines.pipelineversion",
            ),
        ),
    ]
