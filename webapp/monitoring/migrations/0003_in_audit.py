from django.db import migrations


class Migration(migrations.Migration):
    """They are the app `audit`'s."""

    dependencies = [("monitoring", "0002_to_audit"), ("audit", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("AuditRecord"),
                migrations.DeleteModel("Event"),
            ]
        )
    ]
