from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipelines", "0004_paused_at")]

    operations = [
        migrations.AddField("groupplacement", "java_ends", models.JSONField(default=list)),
        migrations.AddField("groupplacement", "vouched", models.CharField(blank=True, max_length=64)),
    ]
