import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What the app `operations` takes over. The deployments' table is the app `placements`'s by now."""

    dependencies = [("handovers", "0007_operation_progress"), ("placements", "0001_initial")]

    operations = [
        migrations.AlterModelTable("operation", "operations_operation"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "handover",
                    "deployment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="handovers",
                        to="placements.deployment",
                    ),
                )
            ]
        ),
    ]
