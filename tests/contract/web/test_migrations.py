"""A fresh database gets the tables of all models by one migration of each app."""

from __future__ import annotations

from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader


def test_a_fresh_database_has_every_column_of_every_model(db: None) -> None:
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table = model._meta.db_table
            found = {column.name for column in connection.introspection.get_table_description(cursor, table)}
            assert found == {field.column for field in model._meta.local_concrete_fields}, table


def test_no_change_of_a_model_waits_for_its_migration(db: None) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)  # exits where one does


def test_each_app_has_one_migration(db: None) -> None:
    ours = {app.label for app in apps.get_app_configs() if app.name.startswith("webapp.")}
    found = sorted(key for key in MigrationLoader(connection).disk_migrations if key[0] in ours)
    assert found == sorted((label, "0001_initial") for label in {label for label, _ in found})
    assert {label for label, _ in found} == {m._meta.app_label for m in apps.get_models()} & ours
