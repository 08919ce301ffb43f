from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("handovers", "0003_created_at"),
    ]

    operations = [
        migrations.AlterField(
            model_name="handover",
            name="ended_at",
            field=models.DateTimeField(blank=True, db_index=True, null=True),
        ),
        migrations.AlterField(
            model_name="operation",
            name="ended_at",
            field=models.DateTimeField(blank=True, db_index=True, null=True),
        ),
    ]
