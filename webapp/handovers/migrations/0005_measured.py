from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("handovers", "0004_ended_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="handover",
            name="measured",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="handover",
            name="begun",
            field=models.JSONField(default=dict),
        ),
    ]
