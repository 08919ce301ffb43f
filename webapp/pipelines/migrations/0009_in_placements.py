from django.db import migrations


class Migration(migrations.Migration):
    """They are the app `placements`'s."""

    dependencies = [
        ("pipelines", "0008_to_placements"),
        ("placements", "0001_initial"),
        ("handovers", "0009_in_operations"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("Replica"),
                migrations.DeleteModel("ExtraReplica"),
                migrations.DeleteModel("GroupPlacement"),
                migrations.DeleteModel("Deployment"),
            ]
        )
    ]
