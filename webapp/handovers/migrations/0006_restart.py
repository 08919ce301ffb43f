from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("handovers", "0005_measured")]

    operations = [
        migrations.AddField("operation", "restart", models.JSONField(default=list)),
    ]
