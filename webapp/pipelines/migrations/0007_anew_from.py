from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipelines", "0006_order_anew")]

    operations = [migrations.AddField("groupplacement", "anew_from", models.BigIntegerField(default=0))]
