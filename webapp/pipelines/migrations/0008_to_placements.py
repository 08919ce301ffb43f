from django.db import migrations


class Migration(migrations.Migration):
    """What the app `placements` takes over."""

    dependencies = [("pipelines", "0007_anew_from")]

    operations = [
        migrations.AlterModelTable("deployment", "placements_deployment"),
        migrations.AlterModelTable("groupplacement", "placements_groupplacement"),
        migrations.AlterModelTable("extrareplica", "placements_extrareplica"),
        migrations.AlterModelTable("replica", "placements_replica"),
    ]
