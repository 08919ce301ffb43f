from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pipelines", "0002_handover"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="deployment",
            index=models.Index(fields=["pipeline", "-created_at"], name="newest_deployments"),
        ),
    ]
