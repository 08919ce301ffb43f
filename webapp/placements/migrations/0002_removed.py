from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placements", "0001_initial")]

    operations = [migrations.AddField("deployment", "removed", models.JSONField(default=list))]
