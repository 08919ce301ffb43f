from django.db import migrations


class Migration(migrations.Migration):
    """It is the app `operations`'s."""

    dependencies = [("handovers", "0008_to_operations"), ("operations", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("Operation"),
            ]
        )
    ]
