from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipelines", "0005_java_ends")]

    operations = [
        migrations.AddField("groupplacement", "order_anew", models.BooleanField(default=False)),
        migrations.AddField("groupplacement", "order_anew_but_for", models.JSONField(default=list)),
    ]
