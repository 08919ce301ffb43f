from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("nodes", "0004_alerts")]

    operations = [migrations.RemoveField(model_name="node", name="credential_hash")]
