from django.db import migrations


class Migration(migrations.Migration):
    """What the app `audit` takes over."""

    dependencies = [("monitoring", "0001_initial")]

    operations = [
        migrations.AlterModelTable("auditrecord", "audit_auditrecord"),
        migrations.AlterModelTable("event", "audit_event"),
    ]
