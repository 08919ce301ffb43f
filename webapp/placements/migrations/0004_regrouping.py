from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("placements", "0003_reconnecting"),
    ]

    operations = [
        migrations.AddField(
            model_name="deployment",
            name="former_groups",
            field=models.JSONField(default=list),
        ),
    ]
