"""Each kind of policy has its own figures: they lie together in `rule`."""

from django.db import migrations, models


def to_rules(apps, schema_editor):
    for policy in apps.get_model("policies", "Policy").objects.all():
        policy.rule = {"kind": policy.kind, "threshold": policy.threshold, "for_s": policy.for_s}
        policy.save(update_fields=["rule"])


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0001_initial"),
    ]

    operations = [
        migrations.AddField(model_name="policy", name="rule", field=models.JSONField(default=dict)),
        migrations.RunPython(to_rules, migrations.RunPython.noop),
        migrations.AlterField(model_name="policy", name="rule", field=models.JSONField()),
        migrations.RemoveField(model_name="policy", name="kind"),
        migrations.RemoveField(model_name="policy", name="threshold"),
        migrations.RemoveField(model_name="policy", name="for_s"),
    ]
