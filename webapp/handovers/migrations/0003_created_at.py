from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("handovers", "0002_handover"),
    ]

    operations = [
        migrations.AlterField(
            model_name="handover",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, db_index=True),
        ),
        migrations.AlterField(
            model_name="operation",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, db_index=True),
        ),
    ]
